"""A saved trace is read back unchanged, and a file that is no trace is an error of one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.traces import written_alias

import tensorlens
from tensorlens.diagnostics import diagnose
from tensorlens.errors import TraceFileError
from tensorlens.records import trace_file
from tensorlens.records.report import Report
from tensorlens.render import REPORT_FORMS, RenderOptions, render

TRACE = written_alias(
    "a = x()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum()\n", message="é 数 \ud800"
).trace


def test_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    trace_file.save(TRACE, path)
    assert trace_file.load(path) == TRACE == tensorlens.load(path)


def test_a_field_that_an_older_file_lacks_takes_its_default() -> None:
    data = json.loads(trace_file.dumps(TRACE))
    for name in ("totals", "claims"):
        del data["trace"][name]
    for event in data["trace"]["events"]:
        del event["within"]
    assert trace_file.loads(json.dumps(data)) == TRACE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 200_000, "not JSON"),
        ("[]", "not a saved trace"),
        ('{"format": "tensorlens.trace", "version": 99}', "version 99"),
        ('{"format": "tensorlens.trace", "version": "\\u001b[2J"}', "version"),
        ('{"format": "tensorlens.trace", "version": 1, "trace": {}}', "damaged"),
        ('{"format": "tensorlens.trace", "version": 1, "trace": "\\ud800"}', "damaged"),
        ('{"format": "tensorlens.trace", "version": 1, "trace": {"events": ["\\ud800"]}}', "damaged"),
        (trace_file.dumps(TRACE)[:700], "cut short"),
        (trace_file.dumps(TRACE).replace('"kind": "Call"', '"kind": "os.system"', 1), "unknown kind"),
        (trace_file.dumps(TRACE).replace('"storage": 1', '"storage": 77', 1), "unknown storage"),
    ],
)
def test_what_is_no_sound_trace_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceFileError, match=words) as refused:
        trace_file.load(path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("before", [b'"op": "torch', b'"outcome": "', b'{"format": "tensorlens'])
def test_a_text_that_is_no_unicode_is_refused(before: bytes, tmp_path: Path) -> None:
    path, whole = tmp_path / "trace.json", trace_file.dumps(TRACE).encode()
    assert before in whole
    path.write_bytes(whole.replace(before, before + b"\x80", 1))
    with pytest.raises(TraceFileError, match="not JSON"):
        trace_file.load(path)


def test_names_without_their_tensors_are_refused() -> None:
    saved = json.loads(trace_file.dumps(TRACE))
    saved["trace"]["inspection"]["sighted"] = [{"index": 1, "site": 0, "names": ["a"], "tensors": []}]
    with pytest.raises(TraceFileError, match=r"BoundNames\.tensors is not as long as names"):
        trace_file.loads(json.dumps(saved))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_damaged_file_is_a_trace_or_a_clear_error(data: st.DataObject) -> None:
    text = trace_file.dumps(TRACE)
    start = data.draw(st.integers(0, len(text) - 1))
    junk = data.draw(st.sampled_from(["", "null", "-1", '"x"', "{}", "[]", "1e999", "true"]))
    damaged = text[:start] + junk + text[start + data.draw(st.integers(0, 12)) :]
    refused = ""
    try:
        trace_file.loads(damaged)
    except TraceFileError as error:
        refused = str(error)
    assert refused.isprintable()


def numbers(value: object) -> Iterator[tuple[Any, Any]]:
    """Yields every place in JSON data that holds a number, as (container, key)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if type(item) is int:
            yield value, key
        yield from numbers(item)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_file_with_wrong_numbers_is_refused_or_can_be_shown(data: st.DataObject) -> None:
    saved = json.loads(trace_file.dumps(TRACE))
    places = list(numbers(saved["trace"]))
    for place in data.draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=3)):
        container, key = places[place]
        container[key] = data.draw(st.sampled_from([-1, 0, 1, 2, 77, 10**15, -(10**15)]))
    try:
        trace = trace_file.loads(json.dumps(saved))
    except TraceFileError:
        return
    report = Report(trace, tuple(diagnose(trace)))
    for form in REPORT_FORMS:
        assert render(report, form, RenderOptions(lesson=True))
