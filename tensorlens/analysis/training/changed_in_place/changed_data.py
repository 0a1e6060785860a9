"""Finds data that a line changes in place again and again, and that losses are computed from each time."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import dropwhile

from tensorlens.analysis.code_around import class_around, method_of, scope_around
from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.plain_values import takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.one_memory import elements, item_size
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call, Span, Tensor

_TURNING = frozenset("neg log log1p exp sqrt square pow dropout".split())  # of one value
_ADDING = _TURNING | frozenset(
    "add sub mul div iadd isub imul itruediv idiv true_divide addcmul addcdiv lerp dropout".split()
)
_SETTING = frozenset("setitem masked_fill fill zero index_fill scatter".split())
_LIMITING = frozenset("clamp clip clamp_min clamp_max relu abs round nan_to_num".split())  # twice is as once
_BACK = tuple(  # operations of which one undoes another
    frozenset(names.split())
    for names in ("add sub iadd isub", "mul div imul itruediv idiv true_divide", "exp log", "square pow sqrt", "neg")
)
_RANDOM = frozenset(
    "rand randn rand_like randn_like randint randint_like randperm normal bernoulli poisson uniform random multinomial "
    "exponential log_normal".split()
)
_CONSTANT = frozenset(
    f"{prefix}{name}{suffix}"
    for name in ("zeros", "ones", "full", "empty")
    for prefix, suffix in (("", ""), ("", "_like"), ("new_", ""))
)
_FLOATS, _WHOLE = ("float", "bfloat"), ("int", "uint")
_MIN_ROUNDS = 2  # in which each element is changed, on average
_MAX_DEPTH = 24


@dataclass(frozen=True, slots=True)
class ChangedData:
    """Memory from before the first step, whose parts are changed by equal operations, and never written otherwise."""

    storage: int
    calls: tuple[Call, ...]  # that change it, in order
    rounds: float  # elements that they change, in proportion to all
    data: int  # the first tensor with this memory


def changed_data(training: Training) -> Iterator[ChangedData]:
    """Yields this memory, by the calls from which on none is missing.

    What is added or multiplied are plain numbers, fixed values and new random values. So a running average, which is
    made from other values, is left out, as is memory that a line writes anew, and a state that begins as a constant.
    """
    facts = training.facts
    if not training.steps:
        return
    written: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls_between(training.complete_from):
        for storage in {facts.storage_of(write.tensor, call.index) for write in call.writes} if not call.within else ():
            if storage is not None:
                written[storage].append(call)
    unseen = {
        facts.storage_of(each.tensor, each.index)
        for each in facts.trace.inspection.overwrites
        if each.tensor is not None
    }
    unseen |= {storage for number in training.leaves for storage in facts.storages_of(number)}
    tensors = _by_storage(facts, written)
    first = training.steps[0].index
    for storage, calls in written.items():
        data = _data(tensors[storage])
        later = [call for call in calls if call.index > first]
        if data is None or not later or not _is_older(facts, data, first) or storage in unseen:
            continue
        sites = {each.site for each in later}
        changes = [call for call in calls if call.site in sites]
        if len(changes) == len(calls) and _is_constant(facts, data):
            continue  # no data: a state such as a walk at random
        size = facts.trace.storages[storage].nbytes
        parts = [facts.tensor(call.writes[0].tensor) for call in changes]
        changed = sum(elements(part.shape) * item_size(part.dtype) for part in parts)
        if changed < _MIN_ROUNDS * size * len({call.site for call in changes}):
            continue
        if _whole_numbers(facts, data) and not all(_sets_number(facts, call) for call in changes):
            continue  # a count, or values that are stored there
        if _are_parts(facts, changes) and add_up(facts, changes) and is_used(training, changes):
            yield ChangedData(storage, tuple(dropwhile(_limits, changes)), changed / size, data)


def _by_storage(facts: TraceIndex, storages: Iterable[int]) -> dict[int, list[Tensor]]:
    """Returns the tensors with each memory."""
    found: dict[int, list[Tensor]] = {storage: [] for storage in storages}
    for tensor in facts.trace.tensors:
        if tensor.storage in found:
            found[tensor.storage].append(tensor)
    return found


def _data(tensors: list[Tensor]) -> int | None:
    """Returns the first of the tensors with one memory, if all are plain tensors of numbers."""
    plain = all(each.type == "Tensor" and each.dtype.startswith((*_FLOATS, *_WHOLE)) for each in tensors)
    return tensors[0].id if tensors and plain else None


def _whole_numbers(facts: TraceIndex, number: int) -> bool:
    return facts.tensor(number).dtype.startswith(_WHOLE)


def _is_constant(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor is made from plain numbers alone, as `0.5 * torch.ones(4)` is."""
    waiting = [number]
    for each in waiting:
        call = facts.creator(each)
        is_made = call is not None and (op_name(call) in _CONSTANT or (call.inputs and op_name(call) in _ADDING))
        if call is None or not is_made or len(waiting) > _MAX_DEPTH:
            return False
        waiting += [] if op_name(call) in _CONSTANT else [access.tensor for access in call.inputs]
    return True


def _sets_number(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call sets elements to one number, as `labels[mask] = 0` does: the only other tensor that it
    is given is a mask."""
    others = [facts.tensor(access.tensor) for access in call.inputs if access.tensor != call.writes[0].tensor]
    return op_name(call) in _SETTING and all(each.dtype == "bool" for each in others)


def _is_older(facts: TraceIndex, number: int, index: int) -> bool:
    made = facts.first_use(number)
    return made is not None and made.index < index


def _are_parts(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether calls change parts of a larger tensor each."""
    parts = (facts.tensor(call.writes[0].tensor) for call in changes)
    return all(part.base is not None and facts.tensor(part.base).shape != part.shape for part in parts)


def add_up(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether calls change values by plain numbers, by values that are drawn for each call, or by the same few
    values each time, such as the means of some features."""
    drawn, since = set[int](), changes[0].index
    fixed: dict[tuple[int, int], set[int]] = defaultdict(set)
    for call in changes:
        part = facts.tensor(call.writes[0].tensor)
        if op_name(call) in _SETTING and _sets_elsewhere(facts, call, drawn):
            continue
        if op_name(call) not in _ADDING | _LIMITING:
            return False
        if op_name(call) == "lerp" and _draws(facts, call.inputs[1].tensor, call.index, since):
            return False  # a state that goes to and fro
        for place, access in enumerate(call.inputs):
            draws = set() if access.tensor == part.id else _draws(facts, access.tensor, call.index, since)
            if draws is None or draws & drawn:
                fixed[call.site, place].add(access.tensor)
                if elements(facts.tensor(access.tensor).shape) >= elements(part.shape):
                    return False
            else:
                drawn |= draws
    is_fixed = all(len(numbers) == 1 and not _is_written(facts, min(numbers), since) for numbers in fixed.values())
    return is_fixed and not all(map(_limits, changes)) and not _are_undone(facts, changes)


def _are_undone(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether another line may undo a change after the changed values were used, as `x.mul_(2)` before a loss
    and `x.div_(2)` after it.

    The calls begin with the change, unless a long run has folded the first of them.
    """
    first = {changes[0].site} if is_complete(facts.trace) else {call.site for call in changes}
    for place, call in enumerate(changes[:_MAX_DEPTH]):
        group = next((names for names in _BACK if op_name(call) in names), None)
        if group is None or call.site not in first or _is_random(facts, call):
            continue
        later = (each for each in changes[place + 1 :] if op_name(each) in group)
        back = next(later, None)
        if back is not None and back.site != call.site and not _is_random(facts, back) and _reads(facts, call, back):
            return True
    return False


def _is_random(facts: TraceIndex, call: Call) -> bool:
    others = [access.tensor for access in call.inputs if access.tensor != call.writes[0].tensor]
    return any(_draws(facts, number, call.index) for number in others)


def _reads(facts: TraceIndex, change: Call, later: Call) -> bool:
    """Returns whether a call between two changes computes something from the changed memory."""
    storage = facts.storage_of(change.writes[0].tensor, change.index)
    for call in facts.calls_between(change.index + 1, later.index - 1):
        numbers = [*(each.tensor for each in call.outputs), *(each.tensor for each in call.writes)]
        touched = {facts.storage_of(number, call.index) for number in numbers}
        if storage not in touched and any(facts.storage_of(each.tensor, call.index) == storage for each in call.inputs):
            return True
    return False


def _limits(call: Call) -> bool:
    """Returns whether a call limits values, as `clamp_` does after noise was added: alone, it adds nothing up."""
    return op_name(call) in _LIMITING


def _sets_elsewhere(facts: TraceIndex, call: Call, drawn: set[int]) -> bool:
    """Returns whether a call sets elements to a number at a place that the line computes anew each time, as
    `row[self.span()] = 0.0` does. The tensors that it is given are the changed one and indices.

    It adds the calls that have drawn an index to those of earlier changes, and a place that these have drawn is no new
    one.
    """
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    others = [facts.tensor(access.tensor) for access in call.inputs if access.tensor != call.writes[0].tensor]
    if any(each.dtype not in ("bool", "int64", "int32", "uint8") for each in others) or span is None:
        return False
    draws = [_draws(facts, each.id, call.index) for each in others]
    if draws and all(draws):
        new = set[int]().union(*filter(None, draws))
        is_new = not new & drawn
        drawn |= new
        return is_new
    place = node.slice if isinstance(node, ast.Subscript) else node if isinstance(node, ast.Call) else None
    return place is not None and any(_is_drawn(facts, span, part) for part in ast.walk(place))


def _is_drawn(facts: TraceIndex, span: Span, node: ast.AST) -> bool:
    """Returns whether an expression draws a place: it calls a random function or a method of the same class that calls
    one, or is a variable that the same function has given such a value."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        holder = class_around(facts, span.file, span.line) if name.startswith("self.") else None
        method = None if holder is None else method_of(holder, name.removeprefix("self."))
        return "rand" in (name if method is None else ast.unparse(method))
    if not isinstance(node, ast.Name):
        return False
    scope = scope_around(facts, span.file, span.line)
    values = (each.value for each in ast.walk(scope) if isinstance(each, ast.Assign)
              and any(plain_name(target) == node.id for target in each.targets))  # fmt: skip
    return any("rand" in ast.unparse(value) for value in values)


def _is_written(facts: TraceIndex, number: int, since: int) -> bool:
    """Returns whether a tensor is made or changed after an event."""
    made = facts.first_use(number)
    later = made is None or made.index > since
    return later or any(event.index > since for event, _ in facts.writes(facts.tensor(number).counter))


def _draws(facts: TraceIndex, number: int, before: int, since: int | None = None) -> set[int] | None:
    """Returns the calls whose random values a tensor is computed from, with plain numbers; None if from others too.

    With `since`, it may also be computed from a whole tensor that no call has written after this event, as a grid of
    times is whose first call a long run has folded.
    """
    waiting, draws, seen = [(number, before)], set[int](), set[int]()
    for each, limit in waiting:
        call = next(iter(facts.producers(each, limit)), None)
        if call is None and since is not None and _is_old_whole(facts, each, since, limit):
            continue
        if call is None or len(seen) > _MAX_DEPTH:
            return None
        if call.index in seen:
            continue
        seen.add(call.index)
        if op_name(call) in _RANDOM:
            draws.add(call.index)
        elif call.inputs and not takes_shape_only(call):
            waiting += [(access.tensor, call.index) for access in call.inputs]
    return draws or None


def _is_old_whole(facts: TraceIndex, number: int, since: int, reader: int) -> bool:
    """Returns whether a tensor is older than an event, has its values from before it, and a call reads all of it."""
    call = facts.event(reader)
    if not isinstance(call, Call) or not call.outputs or _is_written(facts, number, since):
        return False
    output, tensor = facts.tensor(call.outputs[0].tensor), facts.tensor(number)
    return call.outputs[0].tensor != number and elements(output.shape) >= elements(tensor.shape)


def is_used(training: Training, changes: list[Call]) -> bool:
    """Returns whether losses were computed from the changed parts, or from larger ones such as a batch of changed rows,
    right after two of the changes."""
    facts = training.facts
    parts = {call.writes[0].tensor: call.index for call in changes}
    wholes = {facts.tensor(number).base for number in parts}
    memory = facts.storage_of(changes[0].writes[0].tensor, changes[0].index)
    used = set[int]()
    for backward in examined_passes(facts):
        waiting, seen = [(root.tensor, backward.index) for root in backward.roots], set[int]()
        for number, before in waiting:
            is_larger = facts.storage_of(number, before) == memory and number not in wholes
            if parts.get(number, before) < before or (is_larger and changes[0].index < before):
                used.add(number)
            for call in facts.producers(number, before)[:1]:
                if call.index not in seen and len(seen) < MAX_CALLS:
                    seen.add(call.index)
                    waiting += [(access.tensor, call.index) for access in call.inputs]
        if len(used) >= _MIN_ROUNDS:
            return True
    return False
