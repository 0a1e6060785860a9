"""Saved traces: what is written is read back, and what is not a trace is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import written_alias

import tensorlens
from tensorlens import store
from tensorlens.errors import TraceFileError

TRACE = written_alias(
    "a = x()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum()\n", message="é 数 \ud800"
).trace


def test_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    store.save(TRACE, path)
    assert store.load(path) == TRACE == tensorlens.load(path)


def test_a_field_that_an_older_file_lacks_takes_its_default() -> None:
    data = json.loads(store.dumps(TRACE))
    for name in ("totals", "claims"):
        del data["trace"][name]
    for event in data["trace"]["events"]:
        del event["within"]
    assert store.loads(json.dumps(data)) == TRACE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 200_000, "not JSON"),
        ("[]", "not a saved trace"),
        ('{"format": "tensorlens.trace", "version": 99}', "version 99"),
        ('{"format": "tensorlens.trace", "version": "\\u001b[2J"}', "version"),
        ('{"format": "tensorlens.trace", "version": 1, "trace": {}}', "damaged"),
        (store.dumps(TRACE)[:700], "cut short"),
        (store.dumps(TRACE).replace('"kind": "Call"', '"kind": "os.system"', 1), "unknown kind"),
        (store.dumps(TRACE).replace('"storage": 1', '"storage": 77', 1), "unknown storage"),
    ],
)
def test_what_is_no_sound_trace_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceFileError, match=words) as refused:
        store.load(path)
    assert str(refused.value).isprintable()


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_damaged_file_is_a_trace_or_a_clear_error(data: st.DataObject) -> None:
    text = store.dumps(TRACE)
    start = data.draw(st.integers(0, len(text) - 1))
    junk = data.draw(st.sampled_from(["", "null", "-1", '"x"', "{}", "[]", "1e999", "true"]))
    damaged = text[:start] + junk + text[start + data.draw(st.integers(0, 12)) :]
    refused = ""
    try:
        store.loads(damaged)
    except TraceFileError as error:
        refused = str(error)
    assert refused.isprintable()
