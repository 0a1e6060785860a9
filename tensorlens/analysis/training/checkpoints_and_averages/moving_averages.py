"""Finds the moving averages of trained parameters, with the share of the present weights that an update takes.

An update that takes nearly all of them has its decay swapped; one that takes few is lost in half precision.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.averaged_parameters import AVERAGING, source_of_average
from tensorlens.analysis.training.blends import blend_of
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.records.model import Call

_MIN_WRITES = 4
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """A line that updates an average of parameters, and the share that each update takes of the present ones."""

    write: Call  # the last
    share: float | None  # None: the source does not say it as a number
    updates: int
    target: int
    source: int


@dataclass(frozen=True, slots=True)
class Follower:
    """A tensor that one line moves towards a trained parameter, again and again, with steps in between."""

    tensor: int
    row: ParameterRow | None  # if it is a parameter
    source: int
    writes: tuple[Call, ...]


def followers(training: MeasuredTraining) -> Iterator[Follower]:
    """Yields the averages of trained parameters, also those that are plain tensors. Nothing steps them."""
    trained = {row.tensor: row for row in training.rows if row.is_stepped}
    steps = [step.index for step in training.facts.trace.inspection.steps]
    for number in (*(row.tensor for row in training.rows), *_plain_tensors(training, trained)):
        if number in trained:
            continue
        by_site: dict[int, list[Call]] = defaultdict(list)
        for call in training.writes(number, since=0):
            by_site[call.site].append(call)
        for writes in by_site.values():
            counts = [bisect_left(steps, b.index) - bisect_left(steps, a.index) for a, b in pairwise(writes)]
            if len(writes) < _MIN_WRITES or min(counts) < 1:
                continue
            # the first run may copy, as that of an `AveragedModel` does
            first, last = (source_of_average(training, call, number, trained) for call in (writes[1], writes[-1]))
            if last is not None and first == last:
                yield Follower(number, training.row(number), last, tuple(writes))


def _plain_tensors(training: MeasuredTraining, trained: dict[int, ParameterRow]) -> Iterator[int]:
    """Yields the tensors without a row that calls write to again and again, and that have the shape of a parameter."""
    facts, counts = training.facts, Counter[int]()
    shapes = {facts.tensor(number).shape for number in trained}
    known = {row.tensor for row in training.rows}
    for call in facts.calls if trained else ():
        if not call.within and op_name(call) in AVERAGING:
            counts.update({write.tensor for write in call.writes if write.tensor not in known})
    held = {storage for number in known for storage in facts.storages_of(number)} if counts else set()
    for number, count in counts.items():
        tensor = facts.tensor(number)
        is_alike = tensor.base is None and tensor.shape and tensor.shape in shapes
        if count >= _MIN_WRITES and is_alike and held.isdisjoint(facts.storages_of(number)):
            yield number


def moving_averages(training: MeasuredTraining) -> Iterator[MovingAverage]:
    """Yields the lines that update averages, each with one of them.

    A plain tensor to which a line only adds is perhaps none, but a gradient with weight decay.
    """
    seen: set[int] = set()
    for each in followers(training):
        write = each.writes[-1]
        share = None if write.site in seen else _share(training.facts, each)
        is_average = each.row is not None or share is not None or op_name(write).endswith("lerp")
        if write.site not in seen and is_average:
            seen.add(write.site)
            yield MovingAverage(write, share, len(each.writes), each.tensor, each.source)


def _share(facts: TraceIndex, average: Follower) -> float | None:
    """Returns the share of the present weights that the source says as a number; None if it says none."""
    write = average.writes[-1]
    span = facts.span(write.site)
    blend = blend_of(facts, write.inputs[-1].tensor, write.index, average.tensor) if op_name(write) == "copy" else None
    if blend is not None and len(blend) == 2 and abs(sum(blend.values()) - 1) < _CLOSE:
        return blend.get(average.source)
    statement = None if span is None else statement_around(facts, span)
    if span is None or statement is None:
        return None
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    by_name = {node.func.attr: node for node in calls if isinstance(node.func, ast.Attribute)}
    lerp = by_name.get("lerp_") or by_name.get("lerp") or by_name.get("_foreach_lerp_")
    if lerp is not None:
        return _of_lerp(facts, span.file, statement, lerp)
    if "add_" in by_name:
        return _of_add(facts, span.file, by_name)
    return _of_sum(facts, span.file, statement)


def _of_lerp(facts: TraceIndex, file: str, statement: ast.stmt, lerp: ast.Call) -> float | None:
    """Reads `a.lerp_(p, e)`, `_foreach_lerp_`, and `a.copy_(...)` of `a.lerp(p, e)` or `p.lerp(a, 1 - e)`."""
    receiver = lerp.func.value if isinstance(lerp.func, ast.Attribute) else None
    is_function = isinstance(receiver, ast.Name) and receiver.id == "torch"
    parts: list[ast.expr | None] = [*([] if is_function else [receiver]), *lerp.args]
    by_keyword: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in lerp.keywords}
    start, end, weight = (*parts, *(by_keyword.get(name) for name in ("input", "end", "weight")[len(parts) :]))[:3]
    number = None if weight is None else number_of(facts, file, weight)
    is_in_place = isinstance(lerp.func, ast.Attribute) and lerp.func.attr.endswith("lerp_")
    target = start if is_in_place else _assigned(statement)[0]
    if number is None or start is None or end is None or target is None:
        return None
    names = [_base(each) for each in (start, end)]
    return None if names.count(_base(target)) != 1 else number if names[0] == _base(target) else 1 - number


def _of_add(facts: TraceIndex, file: str, by_name: dict[str, ast.Call]) -> float | None:
    """Reads `a.mul_(d).add_(p, alpha=e)`, and `.add_(e * p)`: e, if d and e are 1 together."""
    kept = by_name.get("mul_")
    decay = number_of(facts, file, kept.args[0]) if kept is not None and kept.args else None
    added = by_name["add_"]
    alpha = [keyword.value for keyword in added.keywords if keyword.arg == "alpha"]
    share = number_of(facts, file, alpha[0]) if alpha else _factor(facts, file, added.args[0]) if added.args else None
    return share if decay is not None and share is not None and abs(decay + share - 1) < _CLOSE else None


def _of_sum(facts: TraceIndex, file: str, statement: ast.stmt) -> float | None:
    """Reads `a.data = d * a.data + e * p.data`, and `a.copy_(...)` of such a sum: e, if d and e are 1 together."""
    target, value = _assigned(statement)
    if target is None or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    name = _base(target)
    parts = [(part, _factor(facts, file, part)) for part in (value.left, value.right)]
    own = [factor for part, factor in parts if _reads(part, name)]
    other = [factor for part, factor in parts if not _reads(part, name)]
    if len(own) != 1 or own[0] is None or other[0] is None or abs(own[0] + other[0] - 1) > _CLOSE:
        return None
    return other[0]


def _assigned(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Returns what a statement writes to, and the value: of `a = ...` or `a.copy_(...)`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0], statement.value
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "copy_" and call.args:
        return call.func.value, call.args[0]
    return None, None


def _factor(facts: TraceIndex, file: str, node: ast.expr) -> float | None:
    """Returns the number that a product multiplies a tensor by."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    numbers = [number_of(facts, file, each) for each in (node.left, node.right)]
    known = [number for number in numbers if number is not None]
    return known[0] if len(known) == 1 else None


def _base(node: ast.expr) -> str:
    return ast.unparse(node).removesuffix(".data")


def _reads(part: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.expr) and ast.unparse(node) == name for node in ast.walk(part))
