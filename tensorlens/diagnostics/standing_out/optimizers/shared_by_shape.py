"""Names averages of a hand-written optimizer that parameters of one shape share: the shape is the key of their dict."""

from __future__ import annotations

import ast
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.optimizers.shape_keys import shape_keys
from tensorlens.analysis.training.timeline import DATA_SET, GRAD_READ
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Label, StandingOut

_AVERAGING = frozenset("add iadd mul imul lerp addcmul sub isub maximum".split())
_FRESH = frozenset("copy zero fill set normal uniform random bernoulli exponential".split())
_MIN_STEPS = 3
_NEAR = 24  # calls between two values of an average
_MOST_INPUTS, _MOST_CALLS = 4, 400
_MOST_UPDATES, _MOST_WRITES = 400, 4


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a line updates one buffer for several parameters between two passes, in several steps."""
    facts = training.facts
    if len(facts.backwards) < _MIN_STEPS:
        return
    for file, _ in facts.trees():
        seen, named = set[int](), set[int]()
        for key, code in shape_keys(facts, file):
            found = None if id(code) in seen else _shared(training, facts.span_of(code, file))
            seen.add(id(code))
            if found is None or found[0].site in named:
                continue
            call, number = found
            named.add(call.site)
            yield stands_out(
                f"{as_written(facts, call)} updates one tensor for {number} parameters of one shape in each step: "
                f"`{ast.unparse(key)}` is its key, and each of them goes on with the average of the other",
                Label("value_made_here", facts.span_of(key, file), "the key"),
                facts.label("modified_here", call.site, "updated here", call.index),
            )


def _shared(training: MeasuredTraining, code: Span) -> tuple[Call, int] | None:
    """Returns a call that updates one buffer for several parameters in a step, and their number.

    The code, or what it calls, writes to several parameters of this shape in the step, and has no graph.
    """
    facts = training.facts
    passes, rows = [each.index for each in facts.backwards], {row.tensor for row in training.rows}
    rounds: dict[int, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    begins = dict[int, int]()  # of each step
    moved, updates = defaultdict[tuple[int, ...], set[int]](set), list[Call]()  # by shape
    for call in _calls_of(facts, code):
        step = bisect(passes, call.index)
        begins.setdefault(step, call.index)
        own = _moved(facts, call, rows)
        for number in own:
            moved[facts.tensor(number).shape].add(number)
        updates += [call] if own else []
        if op_name(call) in _AVERAGING and not own and call.outputs and not _is_place(call):
            rounds[call.site][step].append(call)
    for each in rounds.values():
        steps = sorted(begins)
        earlier = {step: begins[steps[place - 1]] if place else None for place, step in enumerate(steps)}
        numbers = [_most(training, calls, (earlier[step], begins[step])) for step, calls in each.items()]
        last = next(iter(each.values()))[-1]
        shapes = {facts.tensor(call.outputs[0].tensor).shape for calls in each.values() for call in calls}
        most = max((len(moved.get(shape, ())) for shape in shapes), default=0)
        if len(numbers) >= _MIN_STEPS and 1 < min(numbers) <= most and _is_read(facts, last.site, updates):
            return last, min(numbers)
    return None


def _is_read(facts: TraceIndex, site: int, updates: list[Call]) -> bool:
    """Returns whether an update of a parameter is computed from what a line makes: others may be for a report."""
    waiting, seen = updates[-_MOST_UPDATES:], set[int]()
    for call in waiting:
        if call.site == site:
            return True
        if call.index in seen or call.op == GRAD_READ or (call.mode == "grad" and call.nodes[1] > call.nodes[0]):
            continue
        seen.add(call.index)
        for access in call.inputs:
            waiting += list(islice(facts.producers(access.tensor, call.index), _MOST_WRITES))
    return False


def _calls_of(facts: TraceIndex, code: Span) -> Iterator[Call]:
    """Yields the calls without a graph that a piece of code makes, also by functions that it calls."""
    inside = dict[int, bool]()
    for call in facts.calls:
        if call.mode == "grad" and call.nodes[1] > call.nodes[0]:
            continue
        if call.site not in inside:
            spans = map(facts.span, facts.call_chain(call.site))
            inside[call.site] = any(
                span is not None and span.file == code.file and code.line <= span.line <= code.end_line
                for span in spans
            )
        if inside[call.site]:
            yield call


def _moved(facts: TraceIndex, call: Call, rows: set[int]) -> set[int]:
    """Returns the parameters that a call writes to, also by their `.data`."""
    written = {write.tensor for write in call.writes} | ({call.inputs[0].tensor} if call.op == DATA_SET else set())
    found = written & rows
    for number in written - rows:
        made = facts.creator(number)
        if made is not None and op_name(made) in ("detach", "get"):
            found |= {access.tensor for access in made.inputs} & rows
    return found


def _most(training: MeasuredTraining, calls: list[Call], begins: tuple[int | None, int]) -> int:
    """Returns for how many parameters the calls of one step go on with one buffer of the step before.

    `begins`: the events that this step, and the one before if there is one, begin with.
    """
    facts, (earlier, since) = training.facts, begins
    counts, lasts = dict[int, int](), dict[int, Call]()
    before = list[Call]()
    for call in calls:
        written = [write.tensor for write in call.writes]
        for number in written:
            made = facts.creator(number)
            is_kept = earlier is None or made is None or made.index < since
            counts[number] = counts.get(number, 0) + (is_kept and not _is_fresh(facts, number))
            lasts[number] = call
        if not written:
            above = _above(training, call, since)
            last = next((each for each in before if each in above), None)
            is_kept = last is not None or earlier is None
            is_kept = is_kept or any(
                each.site == call.site and each.index < since for each in _above(training, call, earlier)
            )
            start = (last or call).outputs[0].tensor
            counts[call.outputs[0].tensor] = counts.get(start, 0) + is_kept
            lasts[call.outputs[0].tensor] = call
            before.append(call)
    several = [(count, lasts[number]) for number, count in counts.items() if count > 1]
    return max((min(count, len(_owners(training, last, since))) for count, last in several), default=0)


def _above(training: MeasuredTraining, call: Call, since: int | None) -> list[Call]:
    """Returns the nearest calls before one that its value was made from, element by element, but not by a parameter."""
    facts = training.facts
    size, found = prod(facts.tensor(call.outputs[0].tensor).shape), [call]
    for each in found:
        for number in (
            {access.tensor for access in each.inputs} - training.statistics.keys() if each.op != GRAD_READ else ()
        ):
            made = next(iter(facts.producers(number, each.index)), None)
            if made is None or made in found or len(found) >= _NEAR or made.index < (since or 0):
                continue
            if prod(facts.tensor(number).shape) == size:
                found.append(made)
    return found


def _owners(training: MeasuredTraining, call: Call, since: int) -> set[int]:
    """Returns the parameters that a step has computed a value from, or from their gradients, element by element.

    Several rounds of one matrix, as of a Newton-Schulz iteration, are computed from one.
    """
    facts, owners = training.facts, training.training.gradient_of
    rows, found, waiting, seen = {row.tensor for row in training.rows}, set[int](), [call], {call.index}
    size = prod(facts.tensor(call.outputs[0].tensor).shape)
    for each in waiting:
        for number in {access.tensor for access in each.inputs}:
            leaf = owners.get(number) or _asked(facts, number) or number
            if leaf in rows:
                found.add(leaf)
            elif prod(facts.tensor(number).shape) == size and len(seen) < _MOST_CALLS:
                made = next(iter(facts.producers(number, each.index)), None)
                is_near = made is not None and made.index >= since and len(made.inputs) <= _MOST_INPUTS
                if made is not None and is_near and made.index not in seen:
                    seen.add(made.index)
                    waiting.append(made)
    return found


def _asked(facts: TraceIndex, number: int) -> int | None:
    """Returns the tensor whose gradient `torch.autograd.grad()` has returned as this one."""
    made = facts.creator(number)
    if made is None or made.op != "autograd.grad" or len(made.outputs) >= len(made.inputs):
        return None
    leaves = made.inputs[-len(made.outputs) :]
    return next((leaf.tensor for leaf, own in zip(leaves, made.outputs, strict=True) if own.tensor == number), None)


def _is_place(call: Call) -> bool:
    """Returns whether a call is given a place for its result, as `torch.mul(a, b, out=place)`."""
    return bool(call.writes) and call.op.startswith("torch.") and not call.op.endswith("_")


def _is_fresh(facts: TraceIndex, number: int) -> bool:
    """Returns whether a line gives a buffer values that are not of those before, as a place for results has them."""
    writes = [event for event, _ in facts.writes(facts.tensor(number).counter)]
    return not all(
        isinstance(event, Call) and op_name(event) not in _FRESH and not _is_place(event) for event in writes
    )
