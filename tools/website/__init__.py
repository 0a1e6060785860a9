"""Builds the website: the lessons, the manual, the ten hardest errors, the guides and the reference, as static HTML.

`make pages` writes it to `build/site`. It has no scripts of its own, and opens from disk; a lesson's report is a page
as `tensorlens run NAME -o lesson.html` writes it.
"""
