"""The styles of everything that is printed; nothing else knows a colour. Rich turns them into what a terminal takes.

Only the sixteen colours that a terminal's own theme defines are used, and of those the ones that read on light and dark
backgrounds alike; what a style says is always said in words or by position too.
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
    """A console that prints into memory, to be read with `console.file.getvalue()`.

    Nothing in what it prints is taken as markup, highlighted, or replaced: it is other people's text.
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
