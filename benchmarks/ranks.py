"""Measures a distributed training of two ranks: processor time of each rank, size of its trace, and `merge`.

What the start of the processes costs is taken out: a run of a few steps is subtracted from one of many.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.scale import ROOT
from tensorlens.records.model import Trace
from tensorlens.records.trace_file import load, save
from tensorlens.render.markdown_text import markdown_table

PROGRAM = ROOT / "benchmarks" / "rank_run.py"
WORLD, FEW, MANY, ROUNDS = 2, 10, 110, 2
MERGED = (16, 64, 256)
PLAIN = [sys.executable]
EXPLAIN = [sys.executable, "-m", "tensorlens", "explain", "-o", "run.json"]


def ranks(quick: bool) -> str:
    many = FEW + (MANY - FEW) // (8 if quick else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, lens = _per_step(folder, many, 1 if quick else ROUNDS)
        sizes = [_saved(folder, steps) for steps in (many, FEW)]
        rows = [_merged(folder, number) for number in (MERGED[:1] if quick else MERGED)]
    step = (sizes[0] - sizes[1]) / (many - FEW)
    table = [
        ("processor time of a rank and step, plain, ms", f"{plain:.2f}"),
        ("with the lens, both processes of the rank, ms", f"{lens:.2f}"),
        ("ratio", f"{lens / plain:.2f}"),
        (f"a rank's trace of {many} steps, kB", f"{sizes[0] / 1000:.0f}"),
        ("of this for each step, kB", f"{step / 1000:.1f}"),
    ]
    heads = ("ranks", "`merge`, s", "traces of the ranks, MB", "one file, MB")
    return "\n".join(
        (
            "## Several ranks",
            "",
            f"A training of {WORLD} ranks on gloo, one thread each.",
            "",
            *markdown_table(("", ""), table),
            "",
            f"`tensorlens merge` of that many ranks, with the traces of {FEW} steps of these two in turn:",
            "",
            *markdown_table(heads, rows),
        )
    )


def _per_step(folder: Path, many: int, rounds: int) -> tuple[float, float]:
    """Returns the processor time of a rank and step in ms, plain and with the lens: the least of all rounds."""
    least: dict[tuple[int, int], float] = {}
    for _ in range(rounds):
        for kind, command in enumerate((PLAIN, EXPLAIN)):
            for steps in (FEW, many):
                seconds = _run(folder, command, steps)
                least[kind, steps] = min(seconds, least.get((kind, steps), seconds))
    plain, lens = (1000 * (least[kind, many] - least[kind, FEW]) / (many - FEW) / WORLD for kind in (0, 1))
    return plain, lens


def _run(folder: Path, command: Sequence[str], steps: int) -> float:
    """Runs all ranks. Returns the processor time of their processes, and of those that they started."""
    shared = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": str(WORLD),
        "TENSORLENS_RANKS": str(folder / "ranks"), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    before = _used()
    started = [
        subprocess.Popen([*command, str(PROGRAM), str(steps)], cwd=folder, env={**shared, "RANK": str(number)})
        for number in range(WORLD)
    ]
    codes = [process.wait() for process in started]
    if any(codes):
        raise RuntimeError("a rank failed")
    return _used() - before


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _saved(folder: Path, steps: int) -> int:
    """Returns the size of the trace of one rank in bytes."""
    _run(folder, EXPLAIN, steps)
    return (folder / "ranks" / "rank0.json").stat().st_size


def _merged(folder: Path, number: int) -> tuple[str, ...]:
    traces = [load(folder / "ranks" / f"rank{place}.json") for place in range(WORLD)]
    files = []
    for rank in range(number):
        files.append(folder / f"copy{rank}.json")
        save(_as_rank(traces[rank % WORLD], rank, number), files[-1])
    one = folder / "one.json"
    command = [sys.executable, "-m", "tensorlens", "merge", *map(str, files)]
    seconds = _seconds(command, folder)
    _seconds([*command, "-o", str(one)], folder)
    sizes = (sum(path.stat().st_size for path in files), one.stat().st_size)
    return str(number), f"{seconds:.1f}", *(f"{size / 1e6:.1f}" for size in sizes)


def _seconds(command: Sequence[str], folder: Path) -> float:
    """Runs a command that ends well. Returns its processor time."""
    before = _used()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return _used() - before


def _as_rank(trace: Trace, number: int, world: int) -> Trace:
    """Returns a trace as that of another rank."""
    rank = trace.script.rank
    assert rank is not None
    rank = replace(rank, number=number, world=world, ended=rank.ended + number / 1000)
    return replace(trace, script=replace(trace.script, rank=rank))
