"""The styles of everything that is printed, and nothing else knows a colour.

Only the sixteen colours that a terminal's own theme defines are used, and of those the ones that read on light and dark
backgrounds alike; what a style says is always said in words or by position too.
"""

from __future__ import annotations

_SGR = {
    "plain": "",
    "heading": "1",
    "quiet": "2",
    "name": "1",
    "code": "",
    "error": "1;31",
    "warning": "1;35",
    "note": "1;36",
    "gutter": "36",
    "primary": "1;31",
    "secondary": "36",
    "help": "1;32",
    "good": "32",
    "bad": "1;31",
    "added": "32",
    "removed": "31",
}


def paint(text: str, style: str) -> str:
    """`text` in the escape codes of `style`."""
    code = _SGR[style]
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
