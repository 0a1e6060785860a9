"""docs/course.md shows what the commands print."""

from __future__ import annotations

from tools import course_page


def test_the_transcripts_are_real() -> None:
    text = course_page.FILE.read_text(encoding="utf-8")
    assert text == course_page.document(), "make course"


def test_the_quiz_is_a_whole_one_with_right_and_wrong_answers() -> None:
    text = course_page.FILE.read_text(encoding="utf-8")
    assert text.count("    right: ") > 3
    assert text.count("    wrong: ") > 1
    assert text.count("    the answer: ") == 1
    assert "\n4 of 7 right\n" in text
    assert "\nto read about the wrong answers\n  tensorlens " in text
