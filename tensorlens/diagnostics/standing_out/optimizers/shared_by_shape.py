"""Names averages of a hand-written optimizer that parameters of one shape share: the shape is the key of their dict."""

from __future__ import annotations

import ast
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call, Span
from tensorlens.records.report import Label, StandingOut

_AVERAGING = frozenset("add iadd mul imul lerp addcmul sub isub maximum".split())
_FRESH = frozenset("copy zero fill set".split())
_READING = frozenset(("get", "setdefault"))
_MIN_STEPS = 3
_NEAR = 4  # calls between two values of an average
_MOST_INPUTS, _MOST_CALLS = 4, 400


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a line updates one buffer for several parameters between two passes, in several steps."""
    facts = training.facts
    if len(facts.backwards) < _MIN_STEPS:
        return
    for file, tree in facts.trees():
        seen = set[int]()
        for node in ast.walk(tree):
            key = _key(node)
            scope = scope_around(facts, file, key.lineno) if key is not None else None
            if key is None or not isinstance(scope, ast.FunctionDef) or scope.lineno in seen:
                continue
            found = _shared(training, facts.span_of(scope, file))
            if found is not None:
                seen.add(scope.lineno)
                call, number = found
                yield stands_out(
                    f"{as_written(facts, call)} updates one tensor for {number} parameters of one shape in each step: "
                    f"`{ast.unparse(key)}` is its key, and each of them goes on with the average of the other",
                    Label("value_made_here", facts.span_of(key, file), "the key"),
                    facts.label("modified_here", call.site, "updated here", call.index),
                )


def _key(node: ast.AST) -> ast.expr | None:
    """Returns the key of an item, or of a call that takes one, if it is the shape of a tensor alone."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and last_name(node.func) in _READING and node.args:
        key = node.args[0]
    inner = key
    while isinstance(inner, ast.Call) and inner.args and last_name(inner.func) in ("tuple", "str"):
        inner = inner.args[0]
    is_size = isinstance(inner, ast.Call) and last_name(inner.func) == "size" and not inner.args
    is_shape = isinstance(inner, ast.Attribute) and inner.attr == "shape"
    return key if is_size or is_shape else None


def _shared(training: MeasuredTraining, function: Span) -> tuple[Call, int] | None:
    """Returns a call that updates one buffer for several parameters in a step, and their number.

    The function writes to several parameters of this shape in the step, and has no graph.
    """
    facts = training.facts
    passes, rows = [each.index for each in facts.backwards], {row.tensor for row in training.rows}
    rounds: dict[int, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    begins = dict[int, int]()  # of each step
    moved = defaultdict[tuple[int, ...], set[int]](set)  # by shape
    for call in facts.calls:
        span = facts.span(call.site) if call.mode != "grad" else None
        if span is None or span.file != function.file or not function.line <= span.line <= function.end_line:
            continue
        step = bisect(passes, call.index)
        begins.setdefault(step, call.index)
        for number in rows & {write.tensor for write in call.writes}:
            moved[facts.tensor(number).shape].add(number)
        is_kept = not rows & {write.tensor for write in call.writes} and call.outputs and not _is_place(call)
        if op_name(call) in _AVERAGING and is_kept:
            rounds[call.site][step].append(call)
    for each in rounds.values():
        numbers = [_most(training, calls, begins[step]) for step, calls in each.items()]
        last = next(iter(each.values()))[-1]
        shapes = {facts.tensor(call.outputs[0].tensor).shape for calls in each.values() for call in calls}
        most = max((len(moved.get(shape, ())) for shape in shapes), default=0)
        if len(numbers) >= _MIN_STEPS and 1 < min(numbers) <= most:
            return last, min(numbers)
    return None


def _most(training: MeasuredTraining, calls: list[Call], since: int) -> int:
    """Returns for how many parameters the calls of one step go on with one buffer."""
    facts = training.facts
    counts, lasts = dict[int, int](), dict[int, Call]()
    before = list[Call]()
    for call in calls:
        written = [write.tensor for write in call.writes]
        for number in written:
            counts[number] = counts.get(number, 0) + (not _is_fresh(facts, number))
            lasts[number] = call
        if not written:
            above = [made for _, made in islice(ancestry(facts, call.outputs[0].tensor, call.index + 1), _NEAR)]
            earlier = next((each for each in before if each in above), None)
            start = earlier.outputs[0].tensor if earlier is not None else call.outputs[0].tensor
            counts[call.outputs[0].tensor] = counts.get(start, 0) + 1
            lasts[call.outputs[0].tensor] = call
            before.append(call)
    several = [(count, lasts[number]) for number, count in counts.items() if count > 1]
    return max((min(count, len(_owners(training, last, since))) for count, last in several), default=0)


def _owners(training: MeasuredTraining, call: Call, since: int) -> set[int]:
    """Returns the parameters that a step has computed a value from, or from their gradients, element by element.

    Several rounds of one matrix, as of a Newton-Schulz iteration, are computed from one.
    """
    facts, owners = training.facts, training.training.gradient_of
    rows, found, waiting, seen = {row.tensor for row in training.rows}, set[int](), [call], {call.index}
    size = prod(facts.tensor(call.outputs[0].tensor).shape)
    for each in waiting:
        for number in {access.tensor for access in each.inputs}:
            leaf = owners.get(number, number)
            if leaf in rows:
                found.add(leaf)
            elif prod(facts.tensor(number).shape) == size and len(seen) < _MOST_CALLS:
                made = next(iter(facts.producers(number, each.index)), None)
                is_near = made is not None and made.index >= since and len(made.inputs) <= _MOST_INPUTS
                if made is not None and is_near and made.index not in seen:
                    seen.add(made.index)
                    waiting.append(made)
    return found


def _is_place(call: Call) -> bool:
    """Returns whether a call is given a place for its result, as `torch.mul(a, b, out=place)`."""
    return bool(call.writes) and call.op.startswith("torch.") and not call.op.endswith("_")


def _is_fresh(facts: TraceIndex, number: int) -> bool:
    """Returns whether a line gives a buffer values that are not of those before, as a place for results has them."""
    writes = [event for event, _ in facts.writes(facts.tensor(number).counter)]
    return not all(
        isinstance(event, Call) and op_name(event) not in _FRESH and not _is_place(event) for event in writes
    )
