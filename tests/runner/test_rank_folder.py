"""The folder in which the ranks of a run meet: only the rank that ends last gets the traces of all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.traces import written_alias

from tensorlens.errors import UsageError
from tensorlens.records.model import Rank, Trace
from tensorlens.records.trace_file import load
from tensorlens.runner import rank_folder
from tensorlens.runner.rank_folder import RankFolder, folder_of

HOLDS = """\
import sys, time
from pathlib import Path
from tensorlens.records.model import Rank
from tensorlens.runner.rank_folder import RankFolder
with RankFolder(Path(sys.argv[1]), Rank(1, 2, "host"), 2):
    print("alive", flush=True)
    time.sleep(60)
"""


def trace_of(number: int, world: int = 2) -> Trace:
    trace = written_alias("a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n").trace
    return replace(trace, script=replace(trace.script, rank=Rank(number, world, "host")))


@contextmanager
def ranks_in(folder: Path, world: int = 2) -> Iterator[list[RankFolder]]:
    with ExitStack() as stack:
        ranks = [RankFolder(folder, Rank(number, world, "host"), world) for number in range(world)]
        yield [stack.enter_context(rank) for rank in ranks]


def test_the_last_rank_gets_all_traces_and_the_others_none(tmp_path: Path) -> None:
    with ranks_in(tmp_path / "run", 3) as ranks:
        assert [ranks[number].save(trace_of(number, 3)) for number in (2, 0)] == [(), ()]
        paths = ranks[1].save(trace_of(1, 3))
        assert [load(path).script.rank for path in paths] == [Rank(number, 3, "host") for number in range(3)]
        ranks[1].remove()
    assert not (tmp_path / "run").exists()


def test_a_killed_rank_is_not_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with (
        RankFolder(tmp_path, Rank(0, 2, "host"), 2) as first,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == "alive\n"
        assert first.save(trace_of(0)) == ()
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert [path.name for path in first.save(trace_of(0))] == ["rank0.json"]
        assert not first.is_alone


def test_a_rank_that_does_not_start_is_waited_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_folder, "_LATE", 0.1)
    with RankFolder(tmp_path, Rank(0, 2, "host"), 2) as first:
        assert [path.name for path in first.save(trace_of(0))] == ["rank0.json"]
        assert first.is_alone


def test_two_processes_can_not_be_one_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_folder, "_LATE", 0.1)
    with RankFolder(tmp_path, Rank(0, 2, "host"), 2), pytest.raises(UsageError, match="another process is rank 0"):
        RankFolder(tmp_path, Rank(0, 2, "host"), 2).__enter__()


def test_a_trace_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    with ranks_in(tmp_path) as ranks:
        for number, rank in enumerate(ranks):
            rank.save(trace_of(number))
    with ranks_in(tmp_path) as (first, second):
        assert first.save(trace_of(0)) == ()
        assert len(second.save(trace_of(1))) == 2


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="not a folder of this user"):
        RankFolder(folder, Rank(0, 2, "host"), 2).__enter__()


def test_the_launcher_and_the_restart_choose_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    environment = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2"}
    folders = [
        folder_of(rank, {**environment, **more})._folder
        for rank, more in (
            (Rank(0, 2, "host"), {}),
            (Rank(1, 2, "host"), {}),
            (Rank(1, 2, "host"), {"MASTER_PORT": "29501"}),
            (Rank(1, 2, "host"), {"TORCHELASTIC_RESTART_COUNT": "1"}),
        )
    ]
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
    named = {**environment, "TENSORLENS_RANKS": str(tmp_path / "shared")}
    assert folder_of(Rank(0, 2, "host"), named)._folder == tmp_path / "shared"


STARTS_LATE = """\
import sys, time
from pathlib import Path
from tensorlens.records.model import Rank
from tensorlens.runner.rank_folder import RankFolder
time.sleep(1)
with RankFolder(Path(sys.argv[1]), Rank(1, 2, "host"), 2):
    sys.stdin.read()
"""


def test_a_rank_whose_process_is_starting_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_folder, "_LATE", 0.1)
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2"}
    command = [sys.executable, "-c", STARTS_LATE, str(tmp_path)]
    with (
        RankFolder(tmp_path, Rank(0, 2, "host"), 2, os.getpid()) as first,
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as other,
    ):
        assert first.save(trace_of(0)) == ()  # the other one is alive
        assert not first.is_alone
        other.kill()


def test_a_rank_that_is_stopped_before_its_script_runs_gets_the_traces_if_it_is_the_last(tmp_path: Path) -> None:
    with ranks_in(tmp_path / "run") as (first, second):
        assert first.leave() == ()
        assert first.save(trace_of(0)) == ()
        assert [path.name for path in second.leave()] == ["rank0.json"]


def test_folders_of_runs_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    left, new, living = (tmp_path / f"{rank_folder.PREFIX}{name}" for name in ("left", "new", "living"))
    for folder in (left, new, living):
        folder.mkdir(mode=0o700)
        (folder / "rank0.alive").touch()
    with RankFolder(living, Rank(1, 2, "host"), 2):
        for folder in (left, living):
            os.utime(folder, (0, 0))
        rank_folder.remove_left()
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([new.name, living.name])
