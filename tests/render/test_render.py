"""Reports as a person and as a program read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from support.folders import DOCS
from support.traces import written_alias

from tensorlens.errors import UsageError
from tensorlens.records.claim import Claim
from tensorlens.records.model import Gap, Notice
from tensorlens.render import FORMS, RenderOptions, render

SOURCE = """\
a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
c = out.detach()
c.zero_()
out.sum().backward()
"""
SCHEMA = json.loads((DOCS / "report.schema.json").read_text())
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

AT_80 = """\
demo.py   torch 2.13.0   4 calls

line  source                                what happened
────────────────────────────────────────────────────────────────────────────────
 1    a = torch.tensor([1.2, 3.4, 5.6],     a    #1  new leaf, requires grad
          requires_grad=True)
 2    out = a.sigmoid()                     out  #2  from a by SigmoidBackward0
 3    c = out.detach()                      c    #2  same memory as out,
                                                     detached
 4    c.zero_()                             c    #2  changed in place, v0 -> v1;
                                                     out changes too
 5    out.sum().backward()                  RuntimeError

               shares  requires_
name  storage  with    grad       grad_fn           leaf  version  .grad
─────────────────────────────────────────────────────────────────────────────
a     #1               yes                          yes   0        None
out   #2       c       yes        SigmoidBackward0  no    1        not a leaf
c     #2       out     no                           yes   1        None

the script ended with RuntimeError at line 5, exit code 1; 1 error at line 4

error[saved-tensor-modified-inplace]: `out` was changed
 --> demo.py:4:1
2 | out = a.sigmoid()
  |       ----------- saved here
3 | c = out.detach()
4 | c.zero_()
  | ^^^^^^^^^ changed here
  = why: it is needed
"""


def test_at_80_columns() -> None:
    assert render(written_alias(SOURCE)) == AT_80


def test_at_120_columns_the_lines_are_whole() -> None:
    text = render(written_alias(SOURCE), "table", RenderOptions(width=120))
    assert " 1    a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)  a    #1  new leaf, requires grad\n" in text


def test_colour_changes_no_character() -> None:
    coloured = render(written_alias(SOURCE), "table", RenderOptions(color=True))
    assert "\x1b[1;31m" in coloured
    plain = "".join(line.rstrip() + "\n" for line in ESCAPES.sub("", coloured).splitlines())
    assert plain == AT_80


def test_wide_characters_keep_their_place() -> None:
    source = SOURCE.replace("out", "输出").replace("a.sig", "a.sig")
    text = render(written_alias(source, ("a", "输出", "c")))
    lines = text.splitlines()
    code = next(line for line in lines if line.startswith("2 | "))
    marks = lines[lines.index(code) + 1]
    assert cell_len(marks[: marks.index("-")]) == cell_len(code[: code.index("a.sigmoid()")])
    assert cell_len(marks.split(" saved")[0].rstrip()) == cell_len(code)
    rows = [line for line in lines if line.startswith(("a     ", "输出  ", "c     "))]
    assert {cell_len(row[: row.index("#")]) for row in rows} == {6}


HOSTILE = ["[bold red]x[/]", "\x1b[2J\x1b]0;title\x07", "\u202etxet", "a\tb\x00c", "e\u0301\u200b", "]]>", "|`*_<b>"]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("format", ["table", "markdown"])
def test_other_peoples_text_is_shown_and_never_obeyed(hostile: str, format: str) -> None:
    report = written_alias(SOURCE + f"# {hostile}", message=hostile)
    notice = Notice(4, 0, "UserWarning", hostile, None)
    gap = Gap(5, hostile, 0)
    trace = replace(report.trace, events=(*report.trace.events, notice, gap))
    diagnostic = replace(report.diagnostics[0], title=hostile, notes=(hostile,))
    text = render(replace(report, trace=trace, diagnostics=(diagnostic,)), format, RenderOptions(lesson=True))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)
    if hostile == HOSTILE[0] and format == "table":
        assert hostile in text


@settings(deadline=None, max_examples=60)
@given(
    st.integers(60, 200),
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=90), max_size=3),
    st.booleans(),
)
def test_no_line_is_wider_than_asked_for(width: int, words: list[str], lesson: bool) -> None:
    report = written_alias(SOURCE, message=" ".join(words))
    notes = tuple(words)
    claims = tuple(Claim(None, word, 1, "holds", "holds", "", ((word, word),)) for word in words)
    diagnostic = replace(report.diagnostics[0], notes=notes, title=" ".join(words) or "a title")
    report = replace(report, trace=replace(report.trace, claims=claims), diagnostics=(diagnostic,))
    text = render(report, "table", RenderOptions(width=width, lesson=lesson))
    assert max(map(len, map(str.rstrip, text.splitlines()))) <= width or max(map(cell_len, text.splitlines())) <= width


def test_json_keeps_the_contract() -> None:
    report = written_alias(SOURCE)
    data = json.loads(render(report, "json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert data["script"]["exception"]["span"]["file"] == "demo.py"
    assert [label["line"] for label in data["diagnostics"][0]["labels"]] == [4, 2]
    assert data["storages"][1] == {"id": 1, "nbytes": 12, "tensors": [1, 2]}
    assert data["tensors"][1]["name"] == "out"


def test_the_schema_refuses_what_is_not_a_report() -> None:
    data = json.loads(render(written_alias(SOURCE), "json"))
    data["diagnostics"][0]["labels"][0]["role"] = "somewhere"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(data)


def test_a_long_run_is_folded_in_json() -> None:
    report = written_alias(SOURCE)
    calls = tuple(replace(report.trace.events[1], index=n) for n in range(5_000))
    data = json.loads(render(replace(report, trace=replace(report.trace, events=calls)), "json"))
    assert len(data["events"]) == 1


def test_markdown_is_fenced_and_tabled() -> None:
    text = render(written_alias(SOURCE), "markdown")
    assert "```text\nerror[saved-tensor-modified-inplace]" in text
    assert "| 2 | `out = a.sigmoid()` |" in text


def test_an_unknown_format_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(UsageError, match=", ".join(FORMS)):
        render(written_alias(SOURCE), "yaml")
