"""Says what is in `.grad`: whether there is one, its norm, which pass filled it, what changed or cleared it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import isfinite

from tensorlens.analysis.training.timeline import GRAD_SET, Moment
from tensorlens.diagnostics.shared.wording import node_text, op_text
from tensorlens.diagnostics.why.subject import Subject
from tensorlens.records.answer import GradientState, Statement
from tensorlens.records.model import Backward, Call
from tensorlens.records.observations import Step
from tensorlens.records.training import ParameterStatistics

_NAN_AND_INFINITY = {"nan": float("nan"), "inf": float("inf")}


def gradient_state(subject: Subject) -> GradientState:
    """Returns the state of `.grad`: what is certain of it."""
    state = subject.state
    if state is None:
        return "unknown"
    if state.grad is None:
        if not state.is_leaf and not state.retains_grad:
            return "not kept"
        return "none" if subject.alive or subject.is_whole else "unknown"
    values = _values(state.grad)
    if values:
        return "not finite" if not all(map(isfinite, values)) else "zero" if not any(values) else "set"
    return "zero" if _is_zeroed(subject) or _is_zero_throughout(subject) else "set"


def _values(text: str) -> list[float]:
    """Returns the numbers in the short text of a small tensor; none if the text is something else, such as a shape."""
    found: list[float] = []
    for word in map(str.strip, text.replace("[", " ").replace("]", " ").split(",")):
        sign = -1 if word.startswith("-") else 1
        known = _NAN_AND_INFINITY.get(word.lstrip("-"))
        try:
            value = sign * known if known is not None else ast.literal_eval(word)
        except (ValueError, SyntaxError):
            return []
        if not isinstance(value, int | float):
            return []
        found.append(value)
    return found


def last_moment(subject: Subject) -> Moment | None:
    """Returns what happened last to `.grad`."""
    return subject.training.last_moment(subject.number, subject.end + 1, "fill", "clear", "touch")


def _is_zeroed(subject: Subject) -> bool:
    """Returns whether the last thing that happened to `.grad` is that a call filled it with zeros."""
    last = last_moment(subject)
    return last is not None and last.kind == "clear" and not _is_reset(last)


def _is_zero_throughout(subject: Subject) -> bool:
    """Returns whether each gradient that was measured is zero, the one in `.grad` among them."""
    statistics, last = subject.statistics, last_moment(subject)
    if statistics is None or not statistics.filled == statistics.zero == statistics.rounds > 0:
        return False
    if last is None or last.kind != "fill" or not isinstance(last.event, Backward):
        return False
    steps = [step for step in subject.training.steps if subject.number in step.parameters]
    return not steps or steps[-1].index > last.index


def gradient_facts(subject: Subject) -> Iterator[Statement]:
    """Yields what is known of the gradients of the tensor: their sizes, and what filled, changed and cleared the last
    one."""
    yield from _measured(subject)
    moments = subject.training.moments.get(subject.number, [])
    filled = next((moment for moment in reversed(moments) if moment.kind == "fill"), None)
    since = -1
    if filled is not None and isinstance(filled.event, Backward):
        since = filled.index
        yield _filled(subject, filled.event)
    later = [m for m in moments if m.kind in ("touch", "clear") and m.index > since and not isinstance(m.event, Step)]
    for moment in ({each.kind: each for each in later}).values():
        if moment is not later[-1] or not _is_reset(moment):  # that is the reason why there is none
            yield _changed(subject, moment, sum(each.kind == moment.kind for each in later))


def _filled(subject: Subject, backward: Backward) -> Statement:
    change = next(each for each in backward.gradients if each.tensor == subject.number)
    how = "filled" if change.before is None else "added to" if change.write is not None else "replaced"
    return subject.say("gradient", f"{how} last by backward ({subject.pass_text(backward)})", backward.site)


def _is_reset(moment: Moment) -> bool:
    """Returns whether a call set `.grad` to None."""
    return moment.kind == "clear" and isinstance(moment.event, Call) and moment.event.op == GRAD_SET


def _changed(subject: Subject, moment: Moment, count: int) -> Statement:
    event = moment.event
    assert isinstance(event, Call | Backward)
    word = "set to None" if _is_reset(moment) else "filled with zeros" if moment.kind == "clear" else "changed"
    times = f", the last of {count} times" if count > 1 else ""
    return subject.say("gradient", f"then {word} by {subject.by(event)}{times}", event.site)


def _measured(subject: Subject) -> Iterator[Statement]:
    """Yields the norms of the gradients, their zeros and infinities, with the operations behind them."""
    statistics = subject.statistics
    if statistics is not None and statistics.filled:
        rounds = _rounds(subject, statistics)
        if statistics.filled == statistics.zero:
            yield subject.say("gradient", f"exactly zero over {rounds}")
        elif statistics.norms:
            first, last = statistics.norms[0], statistics.norms[-1]
            exact = len(statistics.norms) == statistics.filled - statistics.nonfinite
            norms = f"L2 norm {last:.3g}" if len(statistics.norms) == 1 else f"L2 norm {first:.3g} -> {last:.3g}"
            means = "" if exact else ", each a mean of several in a row"
            zeros = f", {100 * statistics.zeros:.3g} % of the elements zero" if statistics.zeros else ""
            yield subject.say("gradient", f"{norms} over {rounds}{means}{zeros}")
        if statistics.nonfinite:
            yield subject.say("gradient", f"infinite or NaN in {statistics.nonfinite} of {rounds}")
    yield from _causes(subject)


def _rounds(subject: Subject, statistics: ParameterStatistics) -> str:
    """Returns "5 steps": the rounds in which a gradient was found, and how many found none."""
    one, many = "backward pass", "backward passes"
    if subject.group is not None and subject.group.steps:
        one, many = "step", "steps"
    none = statistics.rounds - statistics.filled
    rest = f" ({none} more found no gradient)" if none else ""
    return f"{statistics.filled} {one if statistics.filled == 1 else many}{rest}"


def _causes(subject: Subject) -> Iterator[Statement]:
    """Yields the operations that made a gradient zero, infinite or NaN."""
    facts, inspection = subject.facts, subject.facts.trace.inspection
    for zeroed in (each for each in inspection.zeroed if each.tensor == subject.number):
        call = facts.call_of_node(zeroed.sequence, zeroed.index + 1)
        if call is not None:
            shape = facts.tensor(call.outputs[0].tensor).shape if call.outputs else ()
            over = f", over a result of shape {tuple(shape)}" if "softmax" in call.op and 1 in shape else ""
            text = f"{op_text(call.op)} passes only zeros on{over} ({subject.where(call.site)})"
            yield subject.say("gradient", text, call.site)
    for each in (each for each in inspection.singular if each.leaf == subject.number):
        call = facts.call_of_node(each.sequence, each.index + 1)
        where = "" if call is None else f" ({subject.where(call.site)})"
        text = (
            f"the derivative of {node_text(each.node)} is infinite or NaN in {each.infinite} of {each.total} elements"
        )
        yield subject.say("gradient", f"{text}{where}", None if call is None else call.site)
