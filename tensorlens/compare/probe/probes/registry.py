"""Registers probes: each decorated function in the modules of this folder is a row of every comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorlens.compare.comparison_records import Answer, Group, Level
from tensorlens.compare.probe import measured_text
from tensorlens.compare.probe.measured_text import yes

if TYPE_CHECKING:
    from tensorlens.compare.probe.bench import Bench

Ask = Callable[["Bench"], Answer | None]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question about an operand.

    `everywhere`: it is asked on every input, not only on the main one. `level` says when the table shows it: always, if
    the operands differ, or only with `--all`.
    """

    name: str
    label: str
    group: Group
    everywhere: bool
    level: Level
    ask: Ask

    @property
    def question(self) -> str:
        return " ".join((self.ask.__doc__ or "").split())


PROBES: list[Probe] = []


def probe(label: str, group: Group, everywhere: bool = True, level: Level = "usual") -> Callable[[Ask], Ask]:
    """Registers a function as a probe, under its own name."""

    def register(ask: Ask) -> Ask:
        PROBES.append(Probe(ask.__name__, label, group, everywhere, level, ask))
        return ask

    return register


def allowed(call: Callable[[], object]) -> Answer:
    """Answers whether a call runs, with its error if it does not."""
    try:
        call()
    except Exception as error:
        return measured_text.raised(error, "no", value=False)
    return yes(True)


def equal(one: Any, other: Any) -> bool:
    """Returns whether two tensors hold the same numbers; NaN equals NaN."""
    if one.shape != other.shape:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
