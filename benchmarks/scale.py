"""Measures the time and memory of long runs and of start-up, in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
PAUSE = 0.05  # seconds between two looks at a process's memory
LONG, WIDE = (Path(__file__).with_name(name) for name in ("long_run.py", "wide_run.py"))


@dataclass(frozen=True)
class LongRun:
    """One run of `long_run.py`: seconds of each tenth, memory in MB."""

    tenths: list[float]
    resident: list[float]  # of the program's process after each tenth
    peak: float  # of the program's process
    reader_peak: float  # of the command's own process; 0 if there is none
    report_after: float  # seconds from the program's last line to the end of the command


def long_run(ops: int, command: list[str], fails: bool = False) -> LongRun:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        arguments = [str(LONG), str(ops), str(results), *(["fail"] if fails else [])]
        process = subprocess.Popen(
            [*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _peak_memory(process.pid))
            time.sleep(PAUSE)
        ended = time.time()
        result = json.loads(results.read_text())
    return LongRun(result["tenths"], result["resident"], result["peak"], peak, ended - result["ended"])


@dataclass(frozen=True)
class CpuTimes:
    """Seconds of processor time: of the program's process, and of the command's own."""

    program: float
    own: float


def cpu_times(workload: str, times: int, command: list[str]) -> CpuTimes:
    """Measures a command that runs a workload in a process of its own; plain Python has only the program's."""
    return program_times([*command, str(Path(__file__).with_name("workload_run.py")), workload, str(times)])


def program_times(command: list[str]) -> CpuTimes:
    """Measures a command that runs a program in a process of its own."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it keeps its times until it is waited for
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    user, system, users, systems = (int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15])
    process.wait()
    own, below = user + system, users + systems
    return CpuTimes(below, own) if below else CpuTimes(own, 0.0)


def _peak_memory(pid: int) -> float:
    """Returns the peak resident memory of a process, in MB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def busy_wall(workload: str, times: int, command: list[str]) -> float:
    """Runs a command for a workload as many times at once as there are cores; returns the seconds until all end."""
    arguments = [*command, str(Path(__file__).with_name("workload_run.py")), workload, str(times)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    processes = [
        subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment)
        for _ in range(os.cpu_count() or 1)
    ]
    for process in processes:
        process.wait()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Sizes:
    """Bytes of a report as JSON and of the saved trace, and the seconds that `view` takes for that."""

    report: int
    trace: int
    view: float


def sizes(ops: int) -> Sizes:
    """Measures a long run on a hundred lines."""
    with tempfile.TemporaryDirectory() as folder:
        return _sizes(Path(folder), [str(LONG), str(ops), str(Path(folder) / "results.json")])


def wide_sizes(calls: int) -> Sizes:
    """Measures a run of the wide program."""
    with tempfile.TemporaryDirectory() as folder:
        return _sizes(Path(folder), [str(WIDE), str(calls), str(Path(folder) / "progress")])


def _sizes(folder: Path, program: list[str]) -> Sizes:
    trace = folder / "trace.json"
    run = [sys.executable, "-m", "tensorlens", "explain", "-o", str(trace), *program]
    subprocess.run(run, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    view = [sys.executable, "-m", "tensorlens", "view", str(trace)]
    report = subprocess.run([*view, "--format", "json"], cwd=ROOT, capture_output=True, check=True).stdout
    return Sizes(len(report), trace.stat().st_size, _wall(view))


def start_up(pairs: dict[str, tuple[list[str], list[str]]], rounds: int) -> dict[str, float]:
    """Returns for each pair of commands the median ratio of their times; the two run alternately."""
    ratios: dict[str, list[float]] = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, (ours, theirs) in pairs.items():
            ratios[name].append(_wall(ours) / _wall(theirs))
    return {name: median(found) for name, found in ratios.items()}


def _wall(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=os.environ)
    return time.perf_counter() - start
