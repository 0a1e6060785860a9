"""Finds the cause of `gradient-accumulates-without-zero-grad`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Moment, Training, training_of
from tensorlens.diagnostics.shared.optimizers import optimizer_name, several
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.report import Diagnostic, Label, Severity

CODE = "gradient-accumulates-without-zero-grad"


@dataclass(frozen=True, slots=True)
class Sum:
    """A gradient that backward added to one that an update had used already, and the update that used the sum."""

    leaf: int
    used: Moment | None
    added: Moment
    needed: Moment | None


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    sums = [sum_ for leaf in training.moments if (sum_ := _sum(training, leaf)) is not None]
    groups: dict[tuple[int | None, int | None], list[Sum]] = {}
    for sum_ in sums:
        needed = None if sum_.needed is None else sum_.needed.event.site
        groups.setdefault((sum_.added.event.site, needed), []).append(sum_)
    for group in groups.values():
        if group[0].needed is not None:
            yield _report(training, group, group[0].needed)
        elif not any(other.needed for other in sums):
            yield _note(facts, group)


def _sum(training: Training, leaf: int) -> Sum | None:
    """Finds the first sum of gradients of a leaf that an update used. Without any update it is the first sum."""
    moments = training.moments[leaf]
    if not any(moment.kind == "update" for moment in moments):
        added = next((m for m in moments if m.kind == "fill" and not m.fresh), None)
        cleared = any(m.kind in ("clear", "touch") for m in moments)
        return None if added is None or cleared or training.steps else Sum(leaf, None, added, None)
    used: Moment | None = None
    added = None
    for moment in moments:
        if moment.kind == "clear" or (moment.kind == "fill" and moment.fresh) or (moment.kind == "touch" and not added):
            used = added = None
        elif moment.kind == "fill" and used is not None:
            added = added or moment
        elif moment.kind == "update" and used is not None and _puts_back(training.facts, leaf, moment, used):
            used = added = None
        elif moment.kind == "update" and moment.fresh:
            if added is not None:
                return Sum(leaf, used, added, moment)
            used = moment
    return None


def _puts_back(facts: TraceIndex, leaf: int, moment: Moment, used: Moment) -> bool:
    """Returns whether an update undoes an earlier one: it gives the leaf values from before that."""
    call = moment.event
    if not isinstance(call, Call) or not call.op.endswith(("copy_", "data.__set__")) or len(call.inputs) < 2:
        return False
    source = call.inputs[-1].tensor
    made = facts.producers(source, call.index)[:1]
    return source != leaf and bool(made) and made[0].index < used.index


def _label(facts: TraceIndex, group: list[Sum]) -> Label | None:
    event = group[0].added.event
    assert isinstance(event, Backward)
    change = next(c for c in event.gradients if c.tensor == group[0].leaf)
    values = f": {change.before} -> {change.after}" if (change.before or "").startswith("[") else ""
    name = several(facts, [sum_.leaf for sum_ in group], event.index)
    return facts.label("accumulated_here", event.site, f"{op_text(event.op)} adds to the gradient of {name}{values}")


def _report(training: Training, group: list[Sum], needed: Moment) -> Diagnostic:
    facts = training.facts
    name = several(facts, [sum_.leaf for sum_ in group])
    step = needed.event if isinstance(needed.event, Step) else None
    who = f"`{optimizer_name(training, step)}.step()`" if step is not None else "this update"
    reset = f"`{optimizer_name(training, step)}.zero_grad()`" if step is not None else "`.grad = None`"
    used = group[0].used
    again = "" if used is None or used.event.site != needed.event.site else " again"
    return finding(
        CODE,
        "warning",
        f"gradients that had been used already went into another step: {name}",
        "backward adds to `.grad`; nothing cleared it after the update that used it, so the next one used the sum",
        [
            _label(facts, group),
            facts.label("needed_here", needed.event.site, f"{who} uses the sum{again}"),
        ],
        fixes=(fix(f"call {reset} in each round, before backward"),),
        evidence={"parameters": [facts.name(sum_.leaf) for sum_ in group]},
    )


def _note(facts: TraceIndex, group: list[Sum]) -> Diagnostic:
    severity: Severity = "note"
    name = several(facts, [sum_.leaf for sum_ in group])
    return finding(
        CODE,
        severity,
        f"backward added to the gradient that {name} had already",
        "`.grad` holds the sum of all backward passes since it was last cleared",
        [_label(facts, group)],
        fixes=(fix("set `.grad = None` before backward, where the gradient of one pass is meant"),),
        evidence={"parameters": [facts.name(sum_.leaf) for sum_ in group]},
    )
