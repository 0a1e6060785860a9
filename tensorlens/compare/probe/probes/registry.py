"""The table of probes: a decorated function in one of the modules beside this one is a row of every comparison."""

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

    `everywhere`: asked on every input, not on the main one alone. `level`: whether the table shows it always, where the
    operands differ, or only with `--all`.
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
    """Enter a function in the table under its own name."""

    def enter(ask: Ask) -> Ask:
        PROBES.append(Probe(ask.__name__, label, group, everywhere, level, ask))
        return ask

    return enter


def allowed(call: Callable[[], object]) -> Answer:
    """Whether a call runs, with the error if it does not."""
    try:
        call()
    except Exception as error:
        return measured_text.raised(error, "no", value=False)
    return yes(True)


def equal(one: Any, other: Any) -> bool:
    """Whether two tensors hold the same numbers, NaN being the same as NaN."""
    if one.shape != other.shape:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
