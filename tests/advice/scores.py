"""Keeps the scores of the advice in `scores.json`: they may only become better.

`first_try.json` beside the programs of an author who had not seen the finders has their first scores, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from advice.judging import VERDICTS, Judgement
from advice.programs import FIRST_TRY

SCORES = Path(__file__).with_name("scores.json")
FIRST_SCORES = FIRST_TRY / "first_try.json"


class Score(TypedDict, total=False):
    """The score of one program. A correct program has `quiet` only; an unmarked one has no `cause`."""

    quiet: bool
    cause: bool
    help: str  # a verdict
    rounds: int
    harmful: int


def score(found: Judgement) -> Score:
    """Returns the score of a judgement."""
    if found.program.kind == "correct":
        return {"quiet": not found.findings}
    result: Score = {"help": found.first.verdict, "rounds": found.first.rounds, "harmful": found.harmful}
    return {"cause": found.cause, **result} if found.program.causes else result


def worse(before: Score, now: Score) -> list[str]:
    """Says in which ways a score is worse than the recorded one."""
    found = []
    if before.get("quiet") and not now.get("quiet"):
        found.append("a correct program gets a warning")
    if before.get("cause") and not now.get("cause"):
        found.append("the cause is no longer right")
    if _rank(now) > _rank(before):
        found.append(f"the first help: {before.get('help')} -> {now.get('help')}")
    if now.get("harmful", 0) > before.get("harmful", 0):
        found.append(f"harmful helps: {before.get('harmful')} -> {now.get('harmful')}")
    return found


def _rank(score: Score) -> int:
    return [*VERDICTS, "none"].index(score.get("help", "none"))


def recorded(path: Path = SCORES) -> dict[str, dict[str, Score]]:
    """Returns the recorded scores: group of programs, then name of the program."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def record(groups: dict[str, dict[str, Score]], path: Path = SCORES) -> None:
    """Writes scores down, a program a line."""
    parts = []
    for group, scores in sorted(groups.items()):
        lines = [f"  {json.dumps(name)}: {json.dumps(score)}" for name, score in sorted(scores.items())]
        parts.append(f" {json.dumps(group)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def merged(before: dict[str, Score], now: dict[str, Score]) -> dict[str, Score]:
    """Returns the scores to record: the present one, and the recorded one where the present one is worse."""
    return {
        name: before[name] if name in before and worse(before[name], score) else score for name, score in now.items()
    }


def lost(before: dict[str, Score], now: dict[str, Score]) -> Iterable[str]:
    """Yields a line for each program that is worse than recorded."""
    for name, was in before.items():
        if name in now and (ways := worse(was, now[name])):
            yield f"{name}: {'; '.join(ways)}"
