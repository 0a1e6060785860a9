"""Turns the project's Markdown into HTML: headings get anchors, code its colours, commands their links."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from tools.website.layout import relative

Target = Callable[[str], str | None]
_COMMAND = re.compile(r"tensorlens (errors|run) ([a-z0-9_-]+)")


def to_html(text: str, page: str, target: Target, known: frozenset[str] = frozenset()) -> str:
    """Returns the HTML of a Markdown text.

    Args:
        page: the path of the page that gets the text, in the website.
        target: takes the path of a link in the text and returns that of the page or file in the website that it leads
            to; None if the website does not have it: the link then becomes plain text.
        known: the pages that a command in the text may lead to: `tensorlens errors CODE`, `tensorlens run NAME`.
    """
    reader = MarkdownIt("commonmark", {"html": False, "highlight": _coloured}).enable("table")
    tokens = reader.parse(text)
    used: set[str] = set()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[number + 1].content, used))
        if token.type == "table_open":
            token.attrSet("tabindex", "0")
        if token.children:
            token.children = _linked(token.children, page, target, known)
    return str(reader.renderer.render(tokens, reader.options, {}))


def _coloured(code: str, language: str, _: str) -> str:
    """Returns a block of code with a class for each kind of word; other text as it is."""
    try:
        lexer = get_lexer_by_name({"pycon": "pycon", "bash": "bash"}.get(language, language or "text"))
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _anchor(heading: str, used: set[str]) -> str:
    """Returns the id of a heading, as GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    anchor, count = plain, 0
    while anchor in used:
        count += 1
        anchor = f"{plain}-{count}"
    used.add(anchor)
    return anchor


def _linked(tokens: Sequence[Token], page: str, target: Target, known: frozenset[str]) -> list[Token]:
    """Rewrites the links of a line, drops those that lead out of the website to files, and links commands."""
    result: list[Token] = []
    dropped, inside = [], 0
    for token in tokens:
        if token.type == "link_open":
            inside += 1
            place = _place(str(token.attrGet("href")), page, target)
            dropped.append(place is None)
            if place is None:
                continue
            token.attrSet("href", place)
        elif token.type == "link_close":
            inside -= 1
            if dropped.pop():
                continue
        elif token.type == "image":
            place = _place(str(token.attrGet("src")), page, target)
            if place is None:
                continue
            token.attrSet("src", place)
        elif token.type == "code_inline" and not inside:
            result += _command(token, page, known)
            continue
        result.append(token)
    return result


def _place(link: str, page: str, target: Target) -> str | None:
    if re.match(r"[a-z]+:|#", link):
        return link
    path, mark, anchor = link.partition("#")
    there = target(path)
    return None if there is None else relative(there, page) + mark + anchor


def _command(token: Token, page: str, known: frozenset[str]) -> list[Token]:
    match = _COMMAND.fullmatch(token.content.strip())
    folder = {"errors": "errors", "run": "lessons"}[match[1]] if match else ""
    place = f"{folder}/{match[2]}.html" if match else ""
    if place not in known:
        return [token]
    opened = Token("link_open", "a", 1, attrs={"href": relative(place, page)})
    return [opened, token, Token("link_close", "a", -1)]
