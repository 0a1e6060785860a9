"""One report of all ranks: from a real distributed run of two processes, and from saved traces."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS, PROGRAMS
from support.rank_traces import failing, ranks
from support.torchrun import launch
from typer.testing import CliRunner

from tensorlens.cli.command_line import app
from tensorlens.records.model import Trace
from tensorlens.records.trace_file import save

BEGIN = 'import os, signal, time, torch, torch.distributed as dist\ndist.init_process_group("gloo")\n'
FAILS = """\
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
for step in range(3):
    if dist.get_rank() == 1 and step == 1:
        y = torch.ones(3, requires_grad=True).exp()
        y.add_(1)
        y.sum().backward()
    model(torch.ones(2, 3)).sum().backward()
"""
HANGS = """\
x = torch.ones(3)
dist.all_reduce(x)
if dist.get_rank() == 0:
    dist.all_reduce(x)
time.sleep(60)
"""


def test_the_rank_that_failed_is_explained_once_and_torchrun_shows_it(tmp_path: Path) -> None:
    ran = launch(tmp_path, BEGIN + FAILS)
    text = ran.stdout
    assert text.startswith("train.py   2 ranks   torch "), ran.stderr
    assert text.count("error[") == 1
    assert "rank 1 failed first: RuntimeError at line 8" in text
    assert "RuntimeError at line 9: it waited for a rank whose process was gone" in " ".join(text.split())
    assert "rank 1 went on at line 6, rank 0 at line 9: the `if` of line 5" in text
    summary = ran.stderr[ran.stderr.index("Root Cause") :]
    assert "rank      : 1" in summary
    assert "[saved-tensor-modified-inplace] `y.add_(1)` overwrote `y`" in summary


def test_a_hanging_rank_says_the_collective_that_its_record_ends_in(tmp_path: Path) -> None:
    ran = launch(tmp_path, BEGIN + HANGS, "--format", "json", "--timeout", "25")
    data = json.loads(ran.stdout)
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    assert [(each["rank"], each["failed_first"]) for each in data["ranks"]] == [(0, None), (1, None)]
    endings = [each["ending"] for each in data["ranks"]]
    if endings == ["waited", "stopped"]:  # rank 1 was stopped a moment earlier, and `all_reduce` raised
        assert data["ranks"][0]["last_span"]["line"] == 6
        return
    assert endings == ["stopped", "stopped"]
    (waiting,) = data["rank_differences"]
    assert (waiting["kind"], waiting["ranks"]) == ("waiting", [0, 1])
    assert waiting["text"].startswith("the record of rank 0 ends inside `all_reduce` of [3] float32 at line 6")


def test_gradients_that_ranks_have_not_averaged_are_named_once_for_all(tmp_path: Path) -> None:
    script = (PROGRAMS / "ranks" / "ddp-forward-in-no-sync--flag.py").read_text()
    ran = launch(tmp_path, BEGIN + script.replace('dist.init_process_group("gloo")', ""), "--format", "json")
    data = json.loads(ran.stdout)
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    (found,) = data["diagnostics"]
    assert (found["code"], found["ranks"]) == ("ddp-forward-in-no-sync", [0, 1])
    assert found["evidence"] == {"parameters": ["weight"], "step": 1}


def test_one_file_has_the_traces_of_all_ranks(tmp_path: Path) -> None:
    ran = launch(tmp_path, BEGIN + FAILS, "-o", "trace.json")
    assert ran.stdout == ""
    file = tmp_path / "trace.json"
    assert [path.name for path in tmp_path.glob("*.json")] == ["trace.json"]
    viewed = CliRunner().invoke(app, ["view", str(file)])
    assert viewed.exit_code == 1
    assert "rank 1 failed first: RuntimeError at line 8" in viewed.stdout
    data = json.loads(CliRunner().invoke(app, ["view", str(file), "--format", "json"]).stdout)
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    assert [each["failed_first"] for each in data["ranks"]] == [False, True]
    page = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["view", str(file), "-o", str(page)]).exit_code == 1
    assert "rank 1 failed first" in page.read_text()


def saved(folder: Path, traces: list[Trace]) -> list[str]:
    paths = [folder / f"rank{number}.json" for number in range(len(traces))]
    for path, trace in zip(paths, traces, strict=True):
        save(trace, path)
    return [*map(str, paths)]


def test_merge_writes_one_file_or_a_report_of_what_it_is_given(tmp_path: Path) -> None:
    files = saved(tmp_path, failing(3))
    merged = CliRunner().invoke(app, ["merge", *files])
    assert (merged.exit_code, "rank 2 failed first" in merged.stdout) == (1, True)
    one = str(tmp_path / "run.json")
    assert CliRunner().invoke(app, ["merge", *files[:2], "-o", one]).exit_code == 1
    assert "there is no trace of rank 2" in CliRunner().invoke(app, ["view", one]).stdout
    data = json.loads(CliRunner().invoke(app, ["view", one, "--format", "json"]).stdout)
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    assert (len(data["ranks"]), data["missing_ranks"]) == (2, [2])
    again = CliRunner().invoke(app, ["merge", one, files[2]])
    assert again.stdout == merged.stdout
    twice = CliRunner().invoke(app, ["merge", files[0], files[0]])
    assert "are both of rank 0" in str(twice.exception)
    refused = CliRunner().invoke(app, ["view", one, "--format", "sarif"])
    assert "view can't write the form sarif of several ranks" in str(refused.exception)


def test_a_run_without_a_problem_ends_merge_well_and_rank_ranges_are_short(tmp_path: Path) -> None:
    merged = CliRunner().invoke(app, ["merge", *saved(tmp_path, ranks(20, odd=19))])
    assert merged.exit_code == 0
    assert "loss = loss.exp() none on ranks 0 to 18, 1 on rank 19" in " ".join(merged.stdout.split())
    assert "0-18" in merged.stdout


@pytest.mark.parametrize("command", [["merge"], ["merge", "x.json", "--format", "sarif"]])
def test_merge_refuses_what_it_cannot_do(command: list[str]) -> None:
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert str(refused.exception).startswith(("merge what?", "no such format: sarif")) or refused.exit_code == 2
