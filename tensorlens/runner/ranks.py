"""Which process of a distributed run this is, as the launcher says it in the environment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from tensorlens.records.model import Rank


def rank_in(environment: Mapping[str, str]) -> Rank | None:
    """The rank that `torchrun` and what works like it give a process; None where there are no others."""
    number, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    if not (number.isdecimal() and world.isdecimal()) or not int(number) < int(world) or int(world) < 2:
        return None
    return Rank(int(number), int(world), platform.node())


def own_file(path: Path, rank: Rank) -> Path:
    """The file of one rank: `out/report.rank1.json`; that of a second attempt is `out/report.rank1.restart1.json`.
    What is no plain file (`/dev/null`, a pipe) is the same for all."""
    if path.exists() and not path.is_file():
        return path
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    again = "" if restart == "0" else f".restart{restart}"
    mark = "." if path.suffix else "-"  # else the rank would be the suffix, which names the form
    return path.with_name(f"{path.stem}{mark}rank{rank.number}{again.replace('.', mark)}{path.suffix}")


def is_first_here(rank: Rank | None) -> bool:
    """Whether this is the process of a machine that may draw on the terminal."""
    return rank is None or os.environ.get("LOCAL_RANK", str(rank.number)) == "0"
