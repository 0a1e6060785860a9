"""Reads from the environment which process of a distributed run this is."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from tensorlens.records.model import Rank


def rank_in(environment: Mapping[str, str]) -> Rank | None:
    """Returns the rank that `torchrun` and similar launchers give a process; None for a single process."""
    number, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    if not (number.isdecimal() and world.isdecimal()) or not int(number) < int(world) or int(world) < 2:
        return None
    return Rank(int(number), int(world), platform.node())


def own_file(path: Path, rank: Rank) -> Path:
    """Returns the output file of one rank: `out/report.rank1.json`, or `out/report.rank1.restart1.json` after a
    restart. All ranks share a path that is not a regular file (`/dev/null`, a pipe)."""
    if path.exists() and not path.is_file():
        return path
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    restarted = "" if restart == "0" else f".restart{restart}"
    separator = "." if path.suffix else "-"  # without a suffix, ".rank1" would become the suffix, which names the form
    return path.with_name(f"{path.stem}{separator}rank{rank.number}{restarted.replace('.', separator)}{path.suffix}")


def is_first_here(rank: Rank | None) -> bool:
    """Returns whether this is the one process of its machine that may draw on the terminal."""
    return rank is None or os.environ.get("LOCAL_RANK", str(rank.number)) == "0"
