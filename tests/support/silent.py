"""Runs programs given as text, and checks the silent mistakes that are found, and their lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from support.warm import Ran, Warm
from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic

Run = Callable[[str], tuple[Ran, Trace]]
Lines = dict[str, list[int]]


@pytest.fixture(scope="module")
def run(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program under TensorLens and plainly; its output must be the same."""
    folder = tmp_path_factory.mktemp("programs")

    def traced(text: str) -> tuple[Ran, Trace]:
        script = Path(folder) / "program.py"
        script.write_text(textwrap.dedent(text).lstrip("\n"))
        ran, trace = warm.traced(script)
        assert ran == warm.plain(script)
        assert validate(trace) == []
        return ran, trace

    return traced


def warnings(trace: Trace) -> list[Diagnostic]:
    return [diagnostic for diagnostic in diagnose(trace) if diagnostic.severity == "warning"]


def expect(run: Run, code: str, text: str) -> Diagnostic:
    """Returns the only warning of a program. It must be `code`, with labels on the lines whose comments name roles."""
    ran, trace = run(text)
    assert ran.returncode == 0, ran.stderr
    (found,) = warnings(trace)
    assert found.code == code
    marked: Lines = {}
    for number, line in enumerate(textwrap.dedent(text).lstrip("\n").splitlines(), start=1):
        match = re.search(r"# (\w+_here(?:, \w+_here)*)$", line)
        for role in match[1].split(", ") if match else ():
            marked.setdefault(role, []).append(number)
    labelled: Lines = {}
    for label in found.labels:
        labelled.setdefault(label.role, []).append(label.span.line)
    assert {role: sorted(set(lines)) for role, lines in labelled.items()} == marked
    return found


def expect_nothing(run: Run, text: str) -> Trace:
    """Returns the trace of a correct program. It must have no warning."""
    ran, trace = run(text)
    assert ran.returncode == 0, ran.stderr
    assert warnings(trace) == []
    return trace
