"""Records a long, wide run: `python -m benchmarks.long_record 100_000_000` runs it plain and under the lens.

While a run goes on, it appends the calls, the seconds, the memory of both processes and the disk of the journal to
docs/benchmarks/long_run.csv. At the end it draws the plots and writes the section of docs/benchmarks.md. A run that is
stopped leaves what it has measured: `python -m benchmarks.long_record --draw` makes the plots and the section of that.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from benchmarks.long_plots import PLOTS, draw
from benchmarks.page import with_sections
from tensorlens.render.markdown_text import markdown_table

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("wide_run.py")
DOCUMENT = ROOT / "docs" / "benchmarks.md"
HEADING = "## A long, wide run"
RECORD = ROOT / "docs" / "benchmarks" / "long_run.csv"
CALLS = 10_000_000
SAMPLES = 200  # of each run, while the program makes its calls
STEP = 4.0  # MB: a change of the command's memory that makes a sample of its own
PAUSE = 0.05  # seconds between two looks
MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory at one moment in MB; that of a process is 0 before it starts and after it ends."""

    run: str  # "plain" or "lens"
    calls: int
    seconds: float  # since the first call
    program: float
    command: float  # the command's own process: it reads the journal and prints the report
    journal: float  # on the disk
    trace: float  # the saved trace


def record(calls: int, path: Path = RECORD) -> list[Sample]:
    """Runs the program plain and under the lens, and writes what it measures to a file."""
    path.parent.mkdir(exist_ok=True)
    samples: list[Sample] = []
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Sample)])
        for run in ("plain", "lens"):
            for sample in _watched(run, calls):
                samples.append(sample)
                writer.writerow([round(value, 2) if isinstance(value, float) else value for value in astuple(sample)])
                file.flush()
    return samples


def read(path: Path = RECORD) -> list[Sample]:
    """Reads what has been measured so far."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Sample(run, int(calls), *map(float, numbers)) for run, calls, *numbers in rows]


def _watched(run: str, calls: int) -> Iterator[Sample]:
    """Runs the program; yields a sample each time it has made another part of its calls, and while a report is made."""
    with tempfile.TemporaryDirectory() as folder:
        progress, trace = Path(folder) / "progress", Path(folder) / "trace.json"
        lens = ["-m", "tensorlens", "explain", "-o", str(trace)]
        command = [sys.executable, *(lens if run == "lens" else ()), str(PROGRAM), str(calls), str(progress)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            start, due, last, noted = 0.0, 0.0, None, 0.0
            while process.poll() is None:
                made, child = _progress(progress)
                start = start or (time.perf_counter() if made else 0.0)
                own = process.pid if run == "lens" else 0
                seconds = time.perf_counter() - start if start else 0.0
                last = Sample(run, made, seconds, _memory(child), _memory(own), _journal(own), 0.0)
                if child and (due <= made or abs(last.command - noted) >= STEP):
                    yield last
                    due, noted = min(made + calls / SAMPLES, calls) if made < calls else calls + 1, last.command
                time.sleep(PAUSE)
        finally:
            process.kill()
            process.wait()
        if last is not None:
            saved = trace.stat().st_size / MB if trace.exists() else 0.0
            yield replace(last, trace=saved)


def _progress(path: Path) -> tuple[int, int]:
    """Returns how many calls the program has made, and the id of its process; 0 before it has begun."""
    try:
        calls, process = path.read_text().split()
    except (OSError, ValueError):
        return 0, 0
    return int(calls), int(process)


def _memory(process: int) -> float:
    """Returns the resident memory of a process in MB, 0 without one."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB
    except (OSError, IndexError):
        return 0.0


def _journal(process: int) -> float:
    """Returns how much of the disk the journal takes, in MB: a file without a name that the command has open."""
    folder, found = Path(f"/proc/{process}/fd"), 0.0
    try:
        for link in folder.iterdir():
            if "/tensorlens-" in str(link.readlink()):
                found = max(found, link.stat().st_blocks * 512 / MB)
    except OSError:  # the process has ended
        return 0.0
    return found


def rows(samples: list[Sample]) -> list[tuple[str, str, str]]:
    """Returns a table: what was measured, of the plain run and of that under the lens."""
    table = []
    runs = {run: [each for each in samples if each.run == run] for run in ("plain", "lens")}
    for tenth in ("first", "last"):
        costs = (_cost(each, tenth == "first") for each in runs.values())
        table.append((f"us a call, {tenth} tenth", *(f"{cost:.2f}" for cost in costs)))
    for what, name in (
        ("most memory of the program's process, MB", "program"),
        ("most memory of the command's own process, MB", "command"),
        ("most disk that the journal takes, MB", "journal"),
        ("the saved trace, MB", "trace"),
    ):
        most = (max((getattr(sample, name) for sample in each), default=0.0) for each in runs.values())
        table.append((what, *(f"{value:.0f}" for value in most)))
    return table  # type: ignore[return-value]


def _cost(samples: list[Sample], first: bool) -> float:
    """Returns the microseconds of a call in the first or last tenth of a run."""
    total = max((sample.calls for sample in samples), default=0)
    part = [each for each in samples if (0 < each.calls <= total / 10 if first else 0.9 * total <= each.calls < total)]
    calls = part[-1].calls - part[0].calls if part else 0
    return 1e6 * (part[-1].seconds - part[0].seconds) / calls if calls else 0.0


def section(samples: list[Sample]) -> str:
    """Returns the part of docs/benchmarks.md about the run."""
    calls = max((sample.calls for sample in samples if sample.run == "lens"), default=0)
    table = markdown_table(("", "plain", "lens"), rows(samples))
    plots = (f"![{title}](benchmarks/{name})" for name, title in PLOTS.items())
    return "\n".join(
        (
            HEADING,
            "",
            f"{calls:,} calls on 100,000 lines in 10,000 functions, with 100,000 live tensors. `python -m benchmarks",
            "--only long --long CALLS` writes benchmarks/long_run.csv while it runs, and then this section.",
            "",
            *table,
            "",
            *plots,
            "",
        )
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["--draw"]:
        record(int(sys.argv[1]) if sys.argv[1:] else CALLS)
    measured = read()
    draw(measured, RECORD.parent)
    DOCUMENT.write_text(with_sections(DOCUMENT.read_text(), [section(measured)]))
    print(section(measured))
