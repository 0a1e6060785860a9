"""Distributed runs: processes that are not traced, a file and a heading for each rank, the death of another rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS
from support.traces import written_alias

from tensorlens.cli.output import Output
from tensorlens.diagnostics import diagnose
from tensorlens.records.model import Gap, Rank
from tensorlens.records.rank_file import load_ranks
from tensorlens.records.report import Report
from tensorlens.render import render
from tensorlens.runner.launch import Target, run_script
from tensorlens.runner.ranks import own_file, rank_in
from tensorlens.tracer.patches.child_processes import _runs_python, _words

SCHEMA = json.loads((DOCS / "report.schema.json").read_text())
LAUNCH = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
DIES = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
for step in range(3):
    if dist.get_rank() == 1 and step == 1:
        os._exit(3)
    model(torch.ones(2, 3)).sum().backward()
"""


def test_a_rank_has_a_file_and_a_heading_of_its_own_and_is_not_blamed_for_the_death_of_another(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(DIES)
    command = [sys.executable, *LAUNCH, "-m", "tensorlens", "explain", "-o", "trace.json", str(script)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert [path.name for path in tmp_path.glob("trace*")] == ["trace.json"], ended.stderr
    survivor, dead = load_ranks(tmp_path / "trace.json")
    assert (dead.script.outcome, dead.script.exit_code, diagnose(dead)) == ("exit", 3, ())
    report = Report(survivor, diagnose(survivor))
    (found,) = report.diagnostics
    assert found.code == "peer-process-gone"
    assert [(label.role, label.span.line) for label in found.labels] == [("rejected_here", 7)]
    text = render(report)
    assert text.startswith("train.py   rank 0 of 2   torch ")
    assert "refused" not in text
    assert "rank 0 of 2" in render(report, "markdown").splitlines()[2]
    data = json.loads(render(report, "json"))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    (rank,) = data["ranks"]
    assert (rank["rank"], rank["world_size"], rank["diagnostics"]) == (0, 2, ["peer-process-gone"])
    assert rank["last_span"]["line"] == 7


def test_ranks_that_a_traced_launcher_starts_are_reported_as_not_traced(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text("print('a rank')\n")
    trace = run_script(Target("module", "torch.distributed.run", (*LAUNCH[2:], str(script))))
    (gap,) = (event for event in trace.events if isinstance(event, Gap))
    assert gap.reason.startswith(f"a process was started as a rank of a distributed run, `python -u {script}`"[:90])
    assert gap.reason.endswith(
        "what runs in it is not traced (`torchrun ... -m tensorlens explain SCRIPT` traces every rank)"
    )
    assert gap.count == 2


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ([sys.executable, "-c", "pass"], True),
        (["/usr/bin/python3.12", "train.py"], True),
        ("python train.py --lr 1", True),
        (["sh", "-c", "cd x && python3 train.py"], True),
        (["mpirun", "-n", "2", "python", "a.py"], True),
        (["git", "rev-parse", "HEAD"], False),
        ("nvidia-smi --query 'unfinished", False),
        (["sh", "-c", "exit 3"], False),
        ([], False),
    ],
)
def test_only_processes_that_run_python_are_a_gap(command: list[str] | str, runs: bool) -> None:
    assert _runs_python(_words(command)) == runs


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4"}, 1),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "0"}, None),
        ({"RANK": "7", "WORLD_SIZE": "4"}, None),
        ({"RANK": "-1", "WORLD_SIZE": "x"}, None),
        ({}, None),
    ],
)
def test_a_rank_is_what_the_launcher_says(environment: dict[str, str], rank: int | None) -> None:
    found = rank_in(environment)
    assert (None if found is None else found.number) == rank


@pytest.mark.parametrize(
    ("name", "restart", "own"),
    [
        ("report.json", "0", "report.rank3.json"),
        ("report", "0", "report-rank3"),
        ("a.b.md", "2", "a.b.rank3.restart2.md"),
        ("/dev/null", "0", "/dev/null"),
    ],
)
def test_the_file_of_a_rank(name: str, restart: str, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restart)
    assert own_file(Path(name), Rank(3, 4, "host")) == Path(own)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert Output(None, Path(name)).of_rank().path == Path(own)


def test_reports_of_ranks_that_share_an_output_do_not_mix() -> None:
    command = [sys.executable, "-m", "tensorlens", "errors", "--format", "json"]
    reading, writing = os.pipe()
    ranks = [
        subprocess.Popen(command, stdout=writing, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3"})
        for rank in range(3)
    ]
    os.close(writing)
    time.sleep(2)  # all of them have more to write than the pipe has room for
    with open(reading, encoding="utf-8") as stream:
        text = stream.read()
    assert [rank.wait(60) for rank in ranks] == [0, 0, 0]
    size = len(text) // 3
    assert text == text[:size] * 3
    assert len(text) > 65536
    json.loads(text[:size])


def test_a_report_without_ranks_says_none() -> None:
    report = written_alias("a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n")
    assert json.loads(render(report, "json"))["ranks"] is None
    assert "rank" not in render(report).splitlines()[0]
