"""Generates texts that people type or paste, and source with any characters."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import replace
from unittest import mock

from hypothesis import strategies as st
from support.traces import FILE, written_alias

from fuzzing.programs import HOSTILE
from tensorlens.cli.app import run_command
from tensorlens.cli.exit_codes import guarded
from tensorlens.records.error_messages import entries
from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix, Label, Report

_BYTES = st.binary(max_size=9).map(lambda given: given.decode("utf-8", "surrogateescape"))
_ANY = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE), _BYTES)
_ARGUMENT = _ANY.map(lambda text: text.replace("\0", ""))  # a command line holds no null character
_OPTION = st.sampled_from(
    "--format -f json markdown table --width 40 80 --width=9999999999 -o x.json x.md --output= --timeout 0.5 --help --"
    " - -h --version --all -m --no-such --list-probes".split()
)
_WORDS = st.lists(st.one_of(_ARGUMENT, _OPTION), max_size=4)
_MESSAGES = st.sampled_from([pattern for entry in entries() for pattern in entry.patterns])
_PASTED = st.tuples(_ANY, _MESSAGES, _ANY, st.sampled_from((1, 1, 1, 500))).map(
    lambda parts: (parts[0] + parts[1] + "\n" + parts[2]).replace("\0", "") * parts[3]
)
_LINE = st.text(st.characters(exclude_characters="\n"), max_size=60)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Draws arguments of the commands that run no program."""
    command = draw(st.sampled_from(("errors", "errors", "view", "list", "run", "explain", "", "pasted")))
    if command == "pasted":
        return ["errors", draw(_PASTED)]
    words = draw(_WORDS)
    if (command == "run" and "--all" in words) or (command == "explain" and not words):
        words = ["--help"]
    return [command, *words] if command else words


def said_by(arguments: list[str]) -> tuple[int, str, str]:
    """Returns the exit code, standard output and standard error."""
    streams = [
        io.TextIOWrapper(io.BytesIO(), "utf-8", how, write_through=True) for how in ("strict", "backslashreplace")
    ]
    with (
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
        mock.patch.object(sys, "argv", ["tensorlens", *arguments]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""))),
    ):
        code = guarded(run_command)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return code, out, err


@st.composite
def sources(draw: st.DrawFn) -> Report:
    """Draws a report on four lines of source with any comments, and labels and edits anywhere."""
    lines = ["a = f()", "out = a.sigmoid()", "c = out.detach()", "c.zero_()", "out.sum().backward()"]
    source = "\n".join(f"{line}  # {draw(_LINE)}" for line in lines)
    report = written_alias(source, message=draw(_ANY))
    spans = [_span(draw) for _ in range(draw(st.integers(1, 4)))]
    labels = tuple(Label("saved_here", span, draw(_ANY)) for span in spans)
    fix = Fix(draw(_ANY), (Edit(_span(draw), draw(_ANY)),))
    found = replace(
        report.diagnostics[0], labels=labels, fixes=(fix,), notes=(draw(_ANY),), title=draw(_ANY) or "a title"
    )
    return replace(report, diagnostics=(found,))


def _span(draw: st.DrawFn) -> Span:
    first, column = draw(st.integers(1, 7)), draw(st.integers(0, 90))
    return Span(FILE, first, column, first + draw(st.integers(0, 3)), draw(st.integers(0, 90)))
