"""Defines the styles of all output. No other module names a colour.

The colours are those of the terminal's own sixteen that are readable on light and dark backgrounds. A style never says
anything that words or positions do not say too.
"""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.theme import Theme

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
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
