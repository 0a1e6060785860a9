"""The page as a file: one document that loads nothing, whatever the text of a program is."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from support.traces import written_alias

from tensorlens.records.report import Report
from tensorlens.render import RenderOptions, render
from tensorlens.render.page.document import MOST_TEXT, OF_RANKS, SCRIPTS, document, page_file, page_script

SOURCE = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n"
HOSTILE = (
    "a = f()  # </script><script>alert(1)</script> <!-- </pre></style> {{data}} &amp; \x07\x1b[31m\n"
    'out = a.sigmoid()  # "]]>" \u202e txet \u2066 \u200b \u2028 \ud83d\n'
    "c = out.detach()\nc.zero_()\nout.sum().backward()\n"
)
MOST_BESIDE_DATA = 100_000  # bytes


class Parsed(HTMLParser):
    """The elements of a document, with the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        texts: list[str] = []
        self.elements.append((tag, dict(attrs), texts))
        if tag not in ("meta", "link", "img", "br"):
            self._open.append(texts)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].append(data)

    def texts(self, tag: str, **attributes: str) -> list[str]:
        return [
            "".join(texts)
            for name, found, texts in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]


def page(report: Report, **options: Any) -> str:
    return render(report, "html", RenderOptions(**options))


def data_of(text: str) -> dict[str, Any]:
    packed = Parsed(text).texts("script", id="data")[0]
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


@pytest.mark.parametrize("source", [SOURCE, HOSTILE])
def test_a_page_has_the_same_elements_whatever_the_program_says(source: str) -> None:
    elements = Parsed(page(written_alias(source))).elements
    plain = Parsed(page(written_alias(SOURCE))).elements
    assert [(tag, sorted(found)) for tag, found, _ in elements] == [(tag, sorted(found)) for tag, found, _ in plain]


def test_a_page_loads_nothing() -> None:
    text = page(written_alias(SOURCE))
    for tag, attributes, _ in Parsed(text).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form"), tag
        assert not {"src", "href", "srcset", "action", "onload", "onerror", "style"} & set(attributes), (
            tag,
            attributes,
        )
    drawn = (page_script() + page_file("page.css")).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(", drawn)


def test_the_policy_allows_the_pages_own_style_and_script_by_their_hashes_alone() -> None:
    parsed = Parsed(page(written_alias(HOSTILE)))
    policy = next(found["content"] for _, found, _ in parsed.elements if "http-equiv" in found) or ""
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    assert "unsafe" not in policy
    script = next("".join(texts) for tag, found, texts in parsed.elements if tag == "script" and "id" not in found)
    for directive, text in (("script-src", script), ("style-src", parsed.texts("style")[0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(directive) == f"'sha256-{digest}'"
    assert set(rules.values()) == {"'none'"}


def test_scripts_never_make_markup_from_text() -> None:
    script = page_script()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function", script
    )
    assert "</script" not in script.lower()
    assert 'setAttribute("style"' not in script


def test_no_string_of_a_script_has_several_lines() -> None:
    for name in (*SCRIPTS, *OF_RANKS):  # the page drops indentation and lines that begin as comments
        for line in page_file(f"scripts/{name}.js").split("\n"):
            assert "//" in line or "split(/" in line or line.count("`") % 2 == 0, line


def test_every_script_is_part_of_the_page_once() -> None:
    from importlib.resources import files

    folder = files("tensorlens.render.page").joinpath("scripts")
    assert sorted((*SCRIPTS, *OF_RANKS)) == sorted(each.name.removesuffix(".js") for each in folder.iterdir())


def test_hidden_characters_are_shown_and_not_obeyed() -> None:
    text = page(written_alias(HOSTILE))
    shown = data_of(text)
    for part in (json.dumps(shown["sources"], ensure_ascii=False), *Parsed(text).texts("pre")):
        assert not re.search("[\x00-\x08\x0b-\x1f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", part)
        assert "\\u202e" in part


def test_without_script_the_page_shows_the_report_as_text() -> None:
    report = written_alias(SOURCE)
    text = Parsed(page(report)).texts("pre", id="text")[0]
    assert text.rstrip() == render(report, "table", RenderOptions(width=100, findings_first=True)).rstrip()


def test_a_page_is_small_beside_its_data() -> None:
    text = page(written_alias(SOURCE))
    assert len(text.encode()) - len(Parsed(text).texts("script", id="data")[0]) < MOST_BESIDE_DATA
    long = document("long", {}, "a line of text\n" * 100_000)
    assert len(long.encode()) < MOST_BESIDE_DATA
    assert "--format markdown" in Parsed(long).texts("pre")[0]
    assert len(Parsed(long).texts("pre")[0]) < MOST_TEXT + 100


def test_the_title_is_text() -> None:
    text = document("</title><script>alert(1)</script>" + "x" * 300, {}, "")
    assert Parsed(text).texts("title")[0].startswith("</title><script>")
    assert len(Parsed(text).texts("title")[0]) <= 80
