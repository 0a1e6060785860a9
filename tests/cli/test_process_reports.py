"""One report of all processes of a run: ranks that a program or a launcher starts, and `--follow`, from real runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS
from typer.testing import CliRunner

from tensorlens.cli.command_line import app

RANKS = """\
import os, signal, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def train(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    for step in range(3):
        if rank == 1 and step == 1:
            y = torch.ones(3, requires_grad=True).exp()
            if sys.argv[1] == "kills":
                os.kill(os.getpid(), signal.SIGKILL)
            if sys.argv[1] == "hangs":
                time.sleep(100)
            y.add_(1)
            y.sum().backward()
        model(torch.ones(2, 3)).sum().backward()

if __name__ == "__main__":
    if sys.argv[1] == "is rank 0":
        mp.get_context("fork").Process(target=train, args=(1, 2)).start()
        train(0, 2)
    way = "fork" if sys.argv[1] in ("kills", "hangs") else "spawn"
    mp.start_processes(train, args=(2,), nprocs=2, start_method=way)
"""
FAILS_ON_ONE = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
y = torch.ones(3, requires_grad=True).exp()
if dist.get_rank() == 1:
    y.add_(1)
y.sum().backward()
dist.all_reduce(torch.ones(1))
"""
LAUNCHED = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    loss = model.module(torch.randn(2, 3)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""
CHILD = """\
import sys
import torch
print("child", sys.argv[1:], flush=True)
y = torch.ones(3, requires_grad=True).exp()
y.add_(1)
y.sum().backward()
"""
STARTS = """\
import multiprocessing as mp
import os
import subprocess
import sys
import torch
from torch.utils.data import DataLoader

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, number):
        return torch.ones(3).mul(number)

def works(number):
    y = torch.ones(2, requires_grad=True).exp()
    y.add_(1)
    return number

def fails():
    y = torch.ones(2, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()

if __name__ == "__main__":
    print([batch.tolist() for batch in DataLoader(Data(), num_workers=2)])
    print([batch.shape for batch in DataLoader(Data(), num_workers=1, multiprocessing_context="spawn")])
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(works, [1, 2]))
    process = mp.get_context("forkserver").Process(target=fails)
    process.start()
    process.join()
    print(process.exitcode, flush=True)
    print(subprocess.run([sys.executable, "child.py", "--x"]).returncode, flush=True)
    print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode, flush=True)
    print(subprocess.run([sys.executable, "-c", "import os; print(len(os.environ['PATH']))"]).returncode, flush=True)
    print(os.waitstatus_to_exitcode(os.system(f"{sys.executable} -m child -y")), flush=True)
    pid = os.fork()
    if pid == 0:
        torch.ones(2).add(1)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
ENVIRONMENT = {**os.environ, "COLUMNS": "110", "OMP_NUM_THREADS": "1"}


def explain(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder, whose folder for temporary files is empty afterwards."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-m", "tensorlens", "explain", *words],
        cwd=folder,
        env={**ENVIRONMENT, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert not list(temporary.glob("tensorlens-*")), ran.stderr
    return ran


def explain_ranks(folder: Path, mistake: str, port: int, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(RANKS)
    return explain(folder, *options, "train.py", mistake, str(port))


def test_ranks_of_spawn_have_one_report(tmp_path: Path) -> None:
    ran = explain_ranks(tmp_path, "writes", 29631)
    assert ran.returncode == 1
    text = ran.stdout
    assert text.startswith("train.py   2 ranks   torch "), ran.stderr
    assert "rank 1 failed first: RuntimeError at line 18" in text
    assert text.count("error[") == 1
    assert "`y.add_(1)` overwrote `y`" in text
    assert "ProcessRaisedException" not in text
    assert "tensorlens" not in ran.stderr


def test_the_first_process_may_be_a_rank_and_says_that_the_other_is_traced(tmp_path: Path) -> None:
    text = " ".join(explain_ranks(tmp_path, "is rank 0", 29632).stdout.split())
    assert text.startswith("train.py 2 ranks torch ")
    assert "RuntimeError at line 19: it waited for a rank whose process was gone" in text
    assert "train.py:23 a process was forked: it is traced if it is one of the ranks 0" in text


def test_a_forked_rank_that_is_killed_failed_first(tmp_path: Path) -> None:
    ran = explain_ranks(tmp_path, "kills", 29633, "--format", "json")
    data = json.loads(ran.stdout)
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    rank = next(each for each in data["ranks"] if each["rank"] == 1)
    assert (rank["ending"], rank["outcome"]) == ("failed first", "killed"), ran.stderr
    assert data["processes"] == []


def test_ranks_that_hang_are_stopped_at_the_time_limit(tmp_path: Path) -> None:
    ran = explain_ranks(tmp_path, "hangs", 29634, "--timeout", "30", "--format", "json")
    data = json.loads(ran.stdout)
    assert [(each["rank"], each["ending"]) for each in data["ranks"]] == [(0, "stopped"), (1, "stopped")], ran.stderr
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "29634" not in left


def test_a_launcher_is_explained_by_its_ranks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LAUNCHED)
    launch = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "train.py")
    ran = explain(tmp_path, "-o", "run.json", *launch)
    assert ran.stdout == ""
    viewed = CliRunner().invoke(app, ["view", str(tmp_path / "run.json")])
    assert viewed.stdout.startswith("train.py   2 ranks   torch "), ran.stderr
    assert "warning[" in viewed.stdout  # a pass through `module` leaves the gradients of the ranks as they are


def test_a_launcher_shows_the_cause_in_its_summary(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAILS_ON_ONE)
    ran = explain(tmp_path, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "train.py")
    summary = ran.stderr[ran.stderr.index("Root Cause") :]
    assert "rank      : 1" in summary
    assert "tensorlens: [saved-tensor-modified-inplace] `y.add_(1)` overwrote `y`" in summary
    assert "(line 6)" in summary


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], ...]:
    """Runs a program that starts processes in all ways, without the lens and followed."""
    folder = tmp_path_factory.mktemp("follow")
    (folder / "starts.py").write_text(STARTS)
    (folder / "child.py").write_text(CHILD)
    plain = [sys.executable, "starts.py"]
    return (
        subprocess.run(plain, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=200, check=False),
        explain(folder, "--follow", "starts.py"),
    )


def test_followed_processes_print_and_end_as_without_the_lens(
    both: tuple[subprocess.CompletedProcess[str], ...],
) -> None:
    plain, followed = both
    assert plain.stdout.split("\n")[-2] == "7"
    assert followed.stdout.startswith(plain.stdout)
    assert followed.stderr == plain.stderr


def test_each_followed_process_has_a_row_and_its_findings(both: tuple[subprocess.CompletedProcess[str], ...]) -> None:
    plain, followed = both
    report = followed.stdout.removeprefix(plain.stdout)
    table = report[: report.index("\n\n")].splitlines()[2:]
    rows = [" ".join(line.split()) for line in table]
    names = [row.split(" ", 1)[1].rsplit(" started", 1)[0].rstrip(",") for row in rows[:6]]
    assert [*sorted(names[:2]), *names[2:]] == [  # on a busy machine the second of two workers may begin first
        "worker 0 of a DataLoader",
        "worker 1 of a DataLoader",
        "worker 0 of a DataLoader",
        "a worker of a Pool",
        "`fails`",
        "`python child.py --x`",
    ]
    assert "started at line 27 6 " in rows[3]  # two tasks of three calls; the end of a Pool may stop its workers
    assert "RuntimeError at line 22" in rows[4]
    assert "RuntimeError at child.py:6" in rows[5] or "RuntimeError at line 6" in rows[5]
    assert "`python -m child -y`" in rows[6]
    assert "forked at line 37 2 exit code 7" in rows[7]
    assert "it imported no torch" in rows[8]
    assert "in processes 7 and 8:" in report
    assert "the script ran to its end, exit code 0" in report
    assert followed.returncode == 1


def test_follow_does_not_go_with_further_runs_or_one_rank(tmp_path: Path) -> None:
    script = tmp_path / "x.py"
    script.write_text("")
    refused = CliRunner().invoke(app, ["explain", "--follow", "--fix", str(script)])
    assert "--follow goes without --reference, --try and --fix" in str(refused.exception)
    rank = CliRunner().invoke(app, ["explain", "--follow", str(script)], env={"RANK": "0", "WORLD_SIZE": "2"})
    assert "--follow is for the launcher" in str(rank.exception)


def test_a_rank_with_a_report_of_its_own_informs_the_launcher_too(tmp_path: Path) -> None:
    script, error_file = tmp_path / "x.py", tmp_path / "error.json"
    script.write_text(CHILD)
    environment = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": str(error_file)}
    CliRunner().invoke(app, ["explain", "-o", str(tmp_path / "x.sarif"), str(script)], env=environment)
    assert (tmp_path / "x.rank0.sarif").exists()
    assert "[saved-tensor-modified-inplace]" in json.loads(error_file.read_text())["message"]["message"]
