"""Generates programs from `statements`, to run with and without the lens."""

from __future__ import annotations

import re
import textwrap

from hypothesis import strategies as st
from support.folders import DATA

from fuzzing.statements import BLOCKS, STATEMENTS

PRELUDE = (DATA / "prelude.py").read_text(encoding="utf-8")
HOSTILE = (
    "plain",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m\r\b\x0b\x0c",
    "[bold red]x[/] [link=file:///]y[/link]",
    "`*_|<b>]]>\n# heading\n```",
    "\u202etxet \u2066\u200b\ufeff",
    "数据 e\u0301 \U0001f468\u200d\U0001f469 \u0600",
    "\ud800 lone",
    "tab\tand\x00null",
    "%s {} $x \\",
    '\'"""' * 2,
    "",
    "long " * 100,
)
NAMES = ("t{}", "输出{}", "ªº{}", "_e\u0301{}", "x" * 70 + "{}", "𝔘{}", "ا{}")
_MAX_DEPTH = 3

Choice = tuple[str, str]  # a template, and the group that it is of
_ALL = [(template, group) for group, templates in (STATEMENTS | BLOCKS).items() for template in templates]
_FLAT = [choice for choice in _ALL if choice[1] in STATEMENTS]
_GUARDS = [template for template in BLOCKS["handlers"] if "BaseException" in template or "except Exception" in template]


class _Maker:
    """Draws the statements of one program and knows the names it has for tensors."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._names = ["a", "b", "c", "d"]

    def lines(self, least: int, most: int, depth: int) -> str:
        return "\n".join(self._statement(depth) for _ in range(self._draw(st.integers(least, most))))

    def _statement(self, depth: int) -> str:
        guarded = depth == 0 and self._draw(st.integers(0, 9)) > 0
        text = self._filled(self._template(depth), depth)
        return self._within(self._draw(st.sampled_from(_GUARDS[:2])), text, depth) if guarded else text

    def _template(self, depth: int) -> str:
        groups = [*STATEMENTS, *BLOCKS] if depth < _MAX_DEPTH else list(STATEMENTS)
        group = self._draw(st.sampled_from(groups))
        return self._draw(st.sampled_from((STATEMENTS | BLOCKS)[group]))

    def _filled(self, template: str, depth: int) -> str:
        if "$body" in template or "$own" in template:
            return self._within(template, self.lines(1, 3, depth + 1), depth)
        return self._named(template)

    def _within(self, template: str, body: str, depth: int) -> str:
        text = self._named(template)
        inner = {"$body": body, "$own": f"global {', '.join(dict.fromkeys(self._names))}\n{body}"}
        return re.sub(
            r"^( *)(\$body|\$own)$", lambda hit: textwrap.indent(inner[hit[2]], hit[1]), text, flags=re.MULTILINE
        )

    def _named(self, template: str) -> str:
        places = {mark: self._draw(st.sampled_from(self._names)) for mark in ("x", "y", "z") if f"${mark}" in template}
        if "$new" in template:
            places["new"] = self._draw(st.sampled_from(NAMES)).format(len(self._names))
            self._names.append(places["new"])
        if "$k" in template:
            places["k"] = str(self._draw(st.integers(0, 4)))
        if "$text" in template:
            places["text"] = ascii(self._draw(st.sampled_from(HOSTILE)))
        return re.sub(r"\$(x|y|z|new|k|text)\b", lambda hit: places[hit[1]], template)


@st.composite
def programs(draw: st.DrawFn, most: int = 20) -> str:
    """Draws a program that prints its tensors at the end, and catches and prints most of its exceptions."""
    made = _Maker(draw)
    body = made.lines(2, most, 0)
    comment = draw(st.sampled_from(["", *HOSTILE])).replace("\x00", "").replace("\ud800", "")
    remark = re.sub(r"[\r\n]", " ", comment)
    shown = "\n".join(f"show({name})" for name in ("a", "b", "c", "d"))
    return f"{PRELUDE}# {remark}\n{body}\n{shown}\n"
