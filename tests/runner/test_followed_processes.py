"""The processes of a run, as the command sees them: which ranks ran together, and which folders are left over."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.traces import written_alias

from tensorlens.journal.process_folder import Following, ProcessFolder
from tensorlens.records.model import Gap, Rank, Trace
from tensorlens.records.step_choice import StepChoice
from tensorlens.runner.followed_processes import PREFIX, FollowedProcesses, generations, with_true_gaps
from tensorlens.runner.processes import is_running, started_at


def rank(number: int, ended: float, world: int = 2) -> Trace:
    trace = written_alias("a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n").trace
    return replace(trace, script=replace(trace.script, rank=Rank(number, world, "host", ended)))


def numbers(groups: list[list[Trace]]) -> list[list[int]]:
    return [[each.script.rank.number for each in group if each.script.rank is not None] for group in groups]


@pytest.mark.parametrize(
    ("ranks", "began", "groups"),
    [
        ([rank(0, 9), rank(1, 9)], [1, 2], [[0, 1]]),
        ([rank(0, 3), rank(1, 4), rank(1, 9), rank(0, 9)], [1, 2, 5, 6], [[0, 1], [1, 0]]),
        ([rank(0, 3), rank(1, 9)], [1, 5], [[0], [1]]),  # rank 1 of the second run begins after the first has ended
        ([rank(0, 3), rank(1, 9, world=3)], [1, 2], [[0], [1]]),
        ([], [], []),
    ],
)
def test_ranks_that_ran_together_are_a_group(ranks: list[Trace], began: list[float], groups: list[list[int]]) -> None:
    assert numbers(generations(ranks, began)) == groups


def test_a_gap_of_a_rank_says_that_other_ranks_are_traced() -> None:
    trace = rank(0, 1)
    gaps = (Gap(99, "a process was forked: what runs in it is not traced", None), Gap(100, "another reason", None))
    changed = with_true_gaps(replace(trace, events=(*trace.events, *gaps)))
    reasons = [each.reason for each in changed.events if isinstance(each, Gap)]
    assert reasons == ["a process was forked: it is traced if it is one of the ranks", "another reason"]


def test_folders_whose_command_has_ended_are_removed_with_the_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    started = started_at(ended.pid)
    ended.wait()
    (tmp_path / f"{PREFIX}{ended.pid}-{started}-a").mkdir()
    other = tmp_path / f"{PREFIX}{os.getpid()}-{started_at(os.getpid())}-b"
    other.mkdir()
    processes = FollowedProcesses()
    ProcessFolder(processes.path).make()
    processes.remove()
    assert [path.name for path in tmp_path.iterdir()] == [other.name]


def test_a_number_that_another_process_has_got_is_no_running_process() -> None:
    assert is_running(os.getpid(), started_at(os.getpid()))
    assert not is_running(os.getpid(), "1")


def test_what_a_child_is_given_survives_json() -> None:
    following = Following("/x", 7, everything=True, steps=StepChoice(every=3), training=True)
    assert Following.from_json(following.to_json()) == following
