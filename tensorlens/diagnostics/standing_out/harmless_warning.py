"""Says of a warning of PyTorch that the run shows it to be about nothing."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Notice
from tensorlens.records.report import StandingOut

_ORDER_OF_STEPS = "Detected call of `lr_scheduler.step()` before `optimizer.step()`"
_TARGET_SIZE = "Using a target size ("
_Shape = tuple[int, ...]


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds two warnings: of the order of a scheduler's step, and of the size of a target; each line once."""
    seen: set[tuple[int | None, str]] = set()
    for notice in training.facts.notices():
        for begin, finder in ((_ORDER_OF_STEPS, _constant_rates), (_TARGET_SIZE, _pairs_of_elements)):
            if notice.message.startswith(begin) and (notice.site, begin) not in seen:
                seen.add((notice.site, begin))
                yield from finder(training, notice)


def _constant_rates(training: MeasuredTraining, notice: Notice) -> Iterator[StandingOut]:
    """Finds schedules that leave the rates as they were made, so that the order of the steps changes none."""
    scheduled = {each.optimizer for each in training.facts.trace.inspection.schedules}
    groups = [each for each in training.groups if each.optimizer in scheduled and each.steps]
    if groups and all(group.rates == (group.made_rate, group.made_rate) for group in groups):
        rates = " and ".join(dict.fromkeys(f"{group.made_rate:g}" for group in groups))
        steps = "the only step uses" if groups[0].steps == 1 else f"each of the {groups[0].steps:,} steps uses"
        yield stands_out(
            f"PyTorch's warning about the order of `step()` is harmless in this run: {steps} the learning rate that "
            f"`{groups[0].name}` was made with, {rates}",
            training.facts.label("called_here", notice.site, "PyTorch warns here"),
        )


def _pairs_of_elements(training: MeasuredTraining, notice: Notice) -> Iterator[StandingOut]:
    """Finds losses that combine each element of the one operand with one of the other, although the shapes differ."""
    facts = training.facts
    calls = [call for call in facts.calls if call.site == notice.site and call.op.endswith("_loss")]
    shapes = [tuple(facts.tensor(access.tensor).shape for access in call.inputs[:2]) for call in calls]
    if calls and all(len(pair) == 2 and _is_one_to_one(*pair) for pair in shapes):
        one, other = next((pair for pair in shapes if pair[0] != pair[1]), shapes[0])
        yield stands_out(
            f"PyTorch's warning about the target size is harmless in this run: {as_written(facts, calls[0])} combines "
            f"shapes {one} and {other} element by element",
            facts.label("called_here", notice.site, "PyTorch warns here"),
        )


def _is_one_to_one(one: _Shape, other: _Shape) -> bool:
    """Returns whether shapes differ by leading ones alone: then each element meets one of the other tensor."""
    length = max(len(one), len(other))
    padded = [(1,) * (length - len(shape)) + shape for shape in (one, other)]
    return padded[0] == padded[1] and prod(one) == prod(other)
