"""Text of a report as HTML: the same words as in the terminal, escaped, in colours for light and dark backgrounds."""

import re
from html import unescape

import torch
from support.recording import traced

from tensorlens.diagnostics import report_on
from tensorlens.render.html_text import STYLE, boxed, colored, folded, preformatted
from tensorlens.render.report.findings import Finding
from tensorlens.render.tables import printed
from tensorlens.render.theme import CSS_DARK, CSS_LIGHT


def overwritten() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.mul_(2)  # </pre><script>alert("&")</script>
    y.sum().backward()


def words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def test_the_words_are_those_of_the_terminal_and_are_escaped() -> None:
    report = report_on(traced(overwritten))
    parts = [Finding(each, report.trace) for each in report.diagnostics]
    html = colored([*parts, *parts], 88)
    assert words(html) == printed([*parts, *parts], 88, False).rstrip()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert '<span class="tl-red tl-bold">error[saved-tensor-modified-inplace]: </span>' in html
    assert set(re.findall(r"<(\w+)", html)) == {"pre", "span"}


def test_plain_text_is_as_it_is() -> None:
    assert preformatted("a < b\n & c") == "<pre>a &lt; b\n &amp; c</pre>"
    assert folded("<page>", "<b></b>") == "<details><summary>&lt;page&gt;</summary><b></b></details>"


def test_each_colour_has_a_value_for_light_and_for_dark_backgrounds() -> None:
    used = set(re.findall(r"\.tl-(\w+) { color", STYLE))
    assert used == set(CSS_LIGHT) == set(CSS_DARK)
    assert boxed("x").endswith("</style>x</div>")
    assert "@import" not in STYLE
    assert all(".tensorlens" in rule.partition("{")[0] or rule.startswith("@media") for rule in STYLE.split("\n"))
