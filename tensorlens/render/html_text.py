"""Draws text of a report as HTML for notebooks, in colours that are readable on light and on dark backgrounds.

JupyterLab, VS Code and Colab say in an attribute or a class of the document whether it is dark. Where a viewer removes
the style, as GitHub does, the text stays, without colours.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from rich.console import RenderableType
from rich.style import Style

from tensorlens.render.theme import CSS_DARK, CSS_LIGHT, console

_IS_DARK = (
    'body[data-jp-theme-light="false"]', "body.vscode-dark", "body.vscode-high-contrast", 'html[theme="dark"]',
    '[data-theme="dark"]',
)  # fmt: skip
_IS_LIGHT = (
    'body[data-jp-theme-light="true"]', "body.vscode-light", "body.vscode-high-contrast-light", 'html[theme="light"]',
    '[data-theme="light"]',
)  # fmt: skip
_SIZE = "font-size: var(--jp-code-font-size, var(--notebook-cell-output-font-size, 13px))"
_INVERTED = "filter: invert(0.92) hue-rotate(180deg)"  # a frame follows the browser's setting, not that of the notebook


def _rules(selectors: Iterable[str], element: str, declarations: str) -> str:
    return f"{', '.join(f'{each} {element}' for each in selectors)} {{ {declarations} }}"


def _variables(colors: dict[str, str]) -> str:
    return "; ".join(f"--tensorlens-{name}: {value}" for name, value in colors.items())


STYLE = "\n".join(
    [
        f".tensorlens {{ padding-top: 4px; {_variables(CSS_LIGHT)} }}",
        _rules(_IS_DARK, ".tensorlens", _variables(CSS_DARK)),
        *(f".tensorlens .tl-{name} {{ color: var(--tensorlens-{name}) }}" for name in CSS_LIGHT),
        ".tensorlens .tl-bold { font-weight: 600 }",
        ".tensorlens .tl-dim { opacity: 0.7 }",
        f"div.tensorlens > pre {{ white-space: pre; overflow-x: auto; line-height: 1.4; margin: 0 0 6px; {_SIZE} }}",
        ".tensorlens summary { cursor: pointer; opacity: 0.8; margin: 4px 0 }",
        ".tensorlens iframe { display: block; width: 100%; border: 0 }",
        f"@media (prefers-color-scheme: light) {{ {_rules(_IS_DARK, '.tensorlens iframe', _INVERTED)} }}",
        f"@media (prefers-color-scheme: dark) {{ {_rules(_IS_LIGHT, '.tensorlens iframe', _INVERTED)} }}",
    ]
)


def colored(parts: Iterable[RenderableType], width: int) -> str:
    """Returns renderables, separated by blank lines, as preformatted text of at most `width` cells per line."""
    printer = console(width, True)
    pieces = []
    for position, part in enumerate(parts):
        pieces += ["\n"] if position else []
        for segment in printer.render(part):
            pieces.append(_piece(segment.text, segment.style))
        if not pieces[-1].endswith("\n"):
            pieces.append("\n")
    text = "\n".join(line.rstrip() for line in "".join(pieces).rstrip().split("\n"))
    return f"<pre>{text}</pre>"


def preformatted(text: str) -> str:
    """Returns plain text as it is."""
    return f"<pre>{html.escape(text, quote=False)}</pre>"


def _piece(text: str, style: Style | None) -> str:
    escaped = html.escape(text, quote=False)
    classes = [] if style is None else [name for name, is_set in _classes(style) if is_set]
    if not classes or not text.strip():
        return escaped
    return f'<span class="{" ".join(classes)}">{escaped}</span>'


def _classes(style: Style) -> Iterable[tuple[str, bool]]:
    color = "" if style.color is None else style.color.name
    return (f"tl-{color}", color in CSS_LIGHT), ("tl-bold", bool(style.bold)), ("tl-dim", bool(style.dim))


def boxed(*parts: str) -> str:
    """Returns HTML for one output of a notebook. Its style reaches nothing outside of it."""
    return f'<div class="tensorlens"><style>{STYLE}</style>{"".join(parts)}</div>'


def folded(summary: str, content: str) -> str:
    """Returns content that a click on its summary shows."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"
