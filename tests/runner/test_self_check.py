"""An unknown release of PyTorch is checked once, and what the lens can't see there is one line of the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tensorlens.records.model import Gap
from tensorlens.records.observations import Observations
from tensorlens.runner import self_check
from tensorlens.runner.launch import Target, run_script


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Makes the installed PyTorch an unknown release. Returns the folder of the answers."""
    nothing = tmp_path / "measured.txt"
    nothing.write_text("")
    monkeypatch.setattr(self_check, "MEASURED", nothing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tensorlens"


def test_the_lens_sees_what_it_relies_on(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    check = self_check.unseen_in
    monkeypatch.setattr(self_check, "unseen_in", lambda trace: traces.append(trace) or check(trace))  # type: ignore[func-returns-value]
    assert self_check.check() == []
    (trace,) = traces
    assert check(replace(trace, inspection=Observations())) == ["writes past version counters"]
    assert check(replace(trace, failures=())) == ["saved tensors that were overwritten", "graphs that were freed"]
    assert len(check(replace(trace, events=(), failures=(), inspection=Observations()))) > 8


def test_an_unknown_release_is_checked_once_and_reported(
    unknown: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checks: list[str] = []

    def check() -> list[str]:
        checks.append("")
        return ["checkpoints", "optimizer steps"]

    monkeypatch.setattr(self_check, "check", check)
    script = tmp_path / "script.py"
    script.write_text("import torch\ntorch.ones(2)\n")
    for _ in range(2):
        trace = run_script(Target("file", str(script)))
        (gap,) = (event for event in trace.events if isinstance(event, Gap))
        assert gap.reason == "not all of this PyTorch is seen: nothing is known of checkpoints, optimizer steps"
    assert len(checks) == 1
    (answer,) = unknown.iterdir()
    assert json.loads(answer.read_text()) == {"unseen": ["checkpoints", "optimizer steps"]}


def test_a_check_that_ran_out_of_time_says_nothing_and_is_made_again(
    unknown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "_SECONDS", 0.2)  # too few to import PyTorch
    assert self_check.unseen_in_this_torch() == ""
    assert list(unknown.iterdir()) == []


def test_without_a_folder_for_the_answer_nothing_is_checked(unknown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown.write_text("a file, no folder")
    monkeypatch.setattr(self_check, "check", lambda: pytest.fail("checked"))
    assert self_check.unseen_in_this_torch() == ""


def test_a_known_release_needs_no_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(self_check, "_is_measured", lambda release: True)
    monkeypatch.setattr(self_check, "check", lambda: pytest.fail("checked"))
    assert self_check.unseen_in_this_torch() == ""
    assert list(tmp_path.iterdir()) == []
