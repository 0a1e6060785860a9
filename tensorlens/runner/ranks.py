"""Reads from the environment which process of a distributed run this is."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tensorlens.records.model import Rank

FOLDER = "TENSORLENS_RANKS"  # the variable that names a folder which all nodes share


def rank_in(environment: Mapping[str, str]) -> Rank | None:
    """Returns the rank that `torchrun` and similar launchers give a process; None for a single process."""
    number, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    if not (number.isdecimal() and world.isdecimal()) or not int(number) < int(world) or int(world) < 2:
        return None
    run, restart = environment.get("TORCHELASTIC_RUN_ID", ""), environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return Rank(int(number), int(world), host(), run=f"{run} {restart}" if run not in ("", "none") else "")


def host() -> str:
    """Returns the name of this machine."""
    return platform.node()


def own_file(path: Path, rank: Rank) -> Path:
    """Returns the output file of one rank: `out/report.rank1.json`, or `out/report.rank1.restart1.json` after a
    restart. All ranks share a path that is not a regular file (`/dev/null`, a pipe)."""
    return _named(path, f"rank{rank.number}")


def run_file(path: Path, *, has_all: bool) -> Path:
    """Returns the output file of all ranks: `out/report.json`, or `out/report.restart1.json` after a restart. If the
    ranks of this node are written alone, it is `out/report.node0.json`."""
    return _named(path, "" if has_all else f"node{os.environ.get('GROUP_RANK') or platform.node()}")


def process_file(path: Path, number: int) -> Path:
    """Returns the output file of a process that is no rank: `out/report.process2.json`."""
    return _named(path, f"process{number}")


def _named(path: Path, part: str) -> Path:
    if path.exists() and not path.is_file():
        return path
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    parts = [part, "" if restart == "0" else f"restart{restart}"]
    separator = "." if path.suffix else "-"  # without a suffix, ".rank1" would become the suffix, which names the form
    return path.with_name(separator.join([path.stem, *filter(None, parts)]) + path.suffix)


def is_first_here(rank: Rank | None) -> bool:
    """Returns whether this is the one process of its machine that may draw on the terminal."""
    return rank is None or os.environ.get("LOCAL_RANK", str(rank.number)) == "0"


def write_error_file(name: str, message: str, seconds: int) -> None:
    """Writes what ended a rank into the file whose content `torchrun` shows in its summary. What a script's own
    `@record` wrote there stays, below the message."""
    extra = {"timestamp": str(seconds)}
    with suppress(OSError):
        path = Path(name)
        with suppress(ValueError, KeyError, TypeError, FileNotFoundError):
            written = json.loads(path.read_text(encoding="utf-8"))["message"]
            extra = {**written["extraInfo"], "py_callstack": f"{message}\n{written['extraInfo']['py_callstack']}"}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"message": {"message": message, "extraInfo": extra}}), encoding="utf-8")
