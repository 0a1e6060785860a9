"""Defines the styles of all output. No other module names a colour.

The colours are those of the terminal's own sixteen that are readable on light and dark backgrounds. A style never says
anything that words or positions do not say too.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.style import Style
from rich.theme import Theme

if TYPE_CHECKING:
    from rich.syntax import ANSISyntaxTheme

THEME = Theme(
    {
        "plain": "none",
        "heading": "bold",
        "quiet": "dim",
        "name": "bold",
        "code": "none",
        "error": "bold red",
        "warning": "bold magenta",
        "note": "bold cyan",
        "gutter": "cyan",
        "primary": "bold red",
        "secondary": "cyan",
        "help": "bold green",
        "good": "green",
        "bad": "bold red",
        "added": "green",
        "removed": "red",
    },
    inherit=False,
)

CSS_LIGHT = {"red": "#c2255c", "green": "#2b7a3d", "cyan": "#0b7285", "magenta": "#8a3ea8"}
"""The same colours in a notebook with a light background: those of the page."""
CSS_DARK = {"red": "#ff7096", "green": "#69c77e", "cyan": "#4cc3d9", "magenta": "#d194e8"}


def source_theme() -> ANSISyntaxTheme:
    """Returns the colours of Python source and of diffs, by the path of a token in the hierarchy of Pygments."""
    from rich.syntax import ANSISyntaxTheme

    return ANSISyntaxTheme(
        {
            ("Comment",): Style(dim=True),
            ("Keyword",): Style(color="magenta"),
            ("Operator", "Word"): Style(color="magenta"),
            ("Name", "Decorator"): Style(color="cyan"),
            ("Literal", "Number"): Style(color="cyan"),
            ("Literal", "String"): Style(color="green"),
            ("Generic", "Inserted"): Style(color="green"),
            ("Generic", "Deleted"): Style(color="red"),
            ("Generic", "Heading"): Style(bold=True),
            ("Generic", "Subheading"): Style(color="cyan"),
        }
    )


def console(width: int, color: bool) -> Console:
    """Returns a console that prints into memory, to be read with `console.file.getvalue()`.

    It prints other people's text as it is: without markup, highlighting or replacements.
    """
    return Console(
        file=StringIO(),
        width=width,
        theme=THEME,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,  # in a notebook it would show the text there, too
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
