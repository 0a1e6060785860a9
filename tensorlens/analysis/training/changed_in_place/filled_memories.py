"""Finds memories that keep their first entries for ever: `memory = torch.cat([memory, new], dim=1)[:, :size]`.

Once the memory is full, the slice takes nothing of what is new: a slice from the end, `[:, -size:]`, would. So it is
with `narrow(1, 0, size)`, and with the first part of `split([size, n], dim=1)`. A replay memory is one, too: it begins
empty, takes what the model has chosen, and losses read rows of it that a line draws.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Call

_JOINS = frozenset("cat concat concatenate hstack vstack".split())
_PARTS = frozenset("split tensor_split chunk".split())  # of their results the first one is taken
_CUTS = _PARTS | {"getitem", "narrow"}
_SAME_VALUES = frozenset("detach clone contiguous".split())
_ROWS = frozenset("getitem index_select gather take_along_dim".split())  # of a tensor, by an index
_DRAWS = frozenset("randint randperm multinomial".split())
_PICKS = frozenset("topk sort argsort msort nonzero masked_select unique kthvalue".split())
_MIN_TIMES = 3
_MAX_LOOKS = 12
_MAX_CALLS = 4
_MAX_ABOVE = 200  # calls, until a parameter is found


@dataclass(frozen=True, slots=True)
class FilledMemory:
    """A line that cuts what it joins down to the entries that it had before."""

    joined: Call  # of the last time that a backward pass reads
    cut: Call
    kept: int  # tensor
    new: int  # tensor: nothing of it is kept
    dimension: int
    times: int = 1
    is_drawn: bool = False  # it counts only if losses read drawn rows of it


def filled_memories(training: Training) -> Iterator[FilledMemory]:
    """Yields these lines, if a backward pass reads their results."""
    facts = training.facts
    cuts: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if op_name(call) in _CUTS and len(call.inputs) == 1 and call.outputs and not call.within:
            cuts[call.site].append(call)
    found = [each for calls in cuts.values() if (each := _filled(training, calls))]
    if not found:
        return
    read, sites = set[int](), set[int]()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            for access in call.inputs:
                sources = _single_sources(facts, access.tensor, call.index)
                read |= sources
                sites |= _drawing_sites(facts, sources, call.index)
    drawn = set[int]().union(*(_drawn_from(facts, call) for call in facts.calls if call.site in sites))
    for each in found:
        if _uses_rest(facts, each):
            continue
        used = [one for one in each if (drawn if one.is_drawn else read | drawn) & _kept_values(facts, one)]
        yield from (replace(one, times=len(each)) for one in used[-1:])


def _uses_rest(facts: TraceIndex, found: list[FilledMemory]) -> bool:
    """Returns whether calls read the other part of what a line joins too, as the layers of a flow use both halves."""
    joined = {each.joined.outputs[0].tensor for each in found}
    rest = {access.tensor for each in found for access in each.cut.outputs[1:]}
    sites = {each.cut.site for each in found}
    return any(
        access.tensor in rest or (access.tensor in joined and call.site not in sites and op_name(call) in _CUTS)
        for call in facts.calls
        for access in call.inputs
    )


def _kept_values(facts: TraceIndex, memory: FilledMemory) -> set[int]:
    return _same_values(facts, memory.kept, memory.joined.index)


def _drawing_sites(facts: TraceIndex, sources: set[int], before: int) -> set[int]:
    """Returns the lines that draw rows of a tensor, such as `memory[torch.randint(size, (64,))]`, if some tensors are
    such rows: the passes that are looked at may be those before the memory is full."""
    calls = (call for number in sources for call in facts.producers(number, before)[:1])
    return {call.site for call in calls if _drawn_from(facts, call)}


def _drawn_from(facts: TraceIndex, call: Call) -> set[int]:
    """Returns the tensor that a call takes rows of by a random index, with those that it has its values from."""
    if op_name(call) not in _ROWS or len(call.inputs) != 2:
        return set()
    memory, index = (access.tensor for access in call.inputs)
    above = (facts.producers(number, call.index)[:1] for number in _single_sources(facts, index, call.index))
    is_random = any(op_name(made) in _DRAWS for calls in above for made in calls)
    return _same_values(facts, memory, call.index) if is_random else set()


def _filled(training: Training, calls: list[Call]) -> list[FilledMemory]:
    """Returns the results of a line that are earlier results of the same line, if there are several of these.

    New entries without a graph count where the line has never kept any of them: others may be the first ones that a
    program collects, unless they are what a model that steps move has chosen.
    """
    facts = training.facts
    results = {call.outputs[0].tensor for call in calls}
    cuts = [each for call in calls if (each := _cut_to_old(facts, call, results)) is not None]
    found = [each for each in cuts if results & _same_values(facts, each.kept, each.joined.index)]
    if len(cuts) < len(calls) or not all(_is_computed(facts, each.new, each.joined.index) for each in found):
        graph = [each for each in found if _has_graph(facts, each.new, each.joined.index)]
        is_experience = not graph and any(_is_experience(training, each) for each in found[-_MAX_LOOKS:])
        found = [replace(each, is_drawn=True) for each in found] if is_experience else graph
    if len(cuts) < len(calls):  # it begins empty: of one pass, it may have the first positions on purpose
        found = [each for each in found if not facts.requires_grad(each.kept, each.joined.index - 1)]
    return found if len(found) >= _MIN_TIMES else []


def _cut_to_old(facts: TraceIndex, cut: Call, results: set[int]) -> FilledMemory | None:
    """Returns the facts if a cut of two parts keeps nothing of the new one."""
    joined = next(iter(facts.producers(cut.inputs[0].tensor, cut.index)), None)
    if joined is None or op_name(joined) not in _JOINS or len(joined.inputs) != 2:
        return None
    whole, kept_size = facts.tensor(joined.outputs[0].tensor).shape, facts.tensor(cut.outputs[0].tensor).shape
    changed = [place for place, sizes in enumerate(zip(whole, kept_size, strict=False)) if sizes[0] != sizes[1]]
    side = _side(facts, cut, changed[0]) if len(changed) == 1 and len(whole) == len(kept_size) else None
    if side is None:
        return None
    kept, new = (access.tensor for access in (joined.inputs if side == "first" else joined.inputs[::-1]))
    held = facts.tensor(kept).shape  # `cat` takes an empty tensor of one dimension, too
    is_full = len(held) == len(whole) and held[changed[0]] >= kept_size[changed[0]]
    same = {kept, *(results & _same_values(facts, kept, joined.index))}
    is_written = any(any(facts.writes(facts.tensor(number).counter)) for number in same)
    return FilledMemory(joined, cut, kept, new, changed[0]) if is_full and not is_written else None


def _has_graph(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether new entries come from a model, and are no padding."""
    return any(facts.requires_grad(each, before) for each in _same_values(facts, number, before))


def _is_computed(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether new entries are numbers that a parameter has gone into, also while gradients are off."""
    if not facts.tensor(number).dtype.startswith(("float", "bfloat")):
        return False
    above = (call for _, call in ancestry(facts, number, before, _MAX_ABOVE))
    return any(facts.tensor(access.tensor).type == "Parameter" for call in above for access in call.inputs)


def _is_experience(training: Training, memory: FilledMemory) -> bool:
    """Returns whether new entries depend on a parameter that a step has moved since the last ones were joined.

    A part that a line picks out of others, as the most uncertain examples, does not count: it may have a budget.
    """
    facts, (before, after) = training.facts, (memory.kept, memory.joined.index)
    start = min((call.index for call in facts.producers(before, after)), default=after)
    moved = {each for step in training.steps if start < step.index < after for each in step.parameters}
    numbers = set[int]()
    for number, call in ancestry(facts, memory.new, after, _MAX_ABOVE) if moved else ():
        is_mask = any(facts.tensor(access.tensor).dtype == "bool" for access in call.inputs[1:])
        shape = facts.tensor(number).shape
        is_draw = op_name(call) == "multinomial" and len(shape) == 1 and shape[0] > 1  # of rows
        if op_name(call) in _PICKS or is_draw or (op_name(call) == "getitem" and is_mask):
            return False
        numbers |= {number, *(access.tensor for access in call.inputs)}
    return not numbers.isdisjoint(moved)


def _side(facts: TraceIndex, cut: Call, dimension: int) -> str | None:
    """Returns whether a slice takes the first or the last entries of a dimension, as the source writes it."""
    node = facts.node_at(cut.site)
    if op_name(cut) in _PARTS:
        return "first"
    if op_name(cut) == "narrow":
        return _side_of_narrow(node)
    if not isinstance(node, ast.Subscript):
        return None
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    rest = [each for each in indices if isinstance(each, ast.Constant) and each.value is Ellipsis]
    if rest:
        missing = len(facts.tensor(cut.inputs[0].tensor).shape) - len(indices) + 1
        at = indices.index(rest[0])
        indices = [*indices[:at], *[ast.Slice()] * missing, *indices[at + 1 :]]
    if not all(isinstance(each, ast.Slice) for each in indices) or dimension >= len(indices):
        return None
    taken = indices[dimension]
    if not isinstance(taken, ast.Slice) or taken.step is not None or (taken.lower is None) == (taken.upper is None):
        return None
    if taken.upper is not None:
        return "first"
    return "last" if isinstance(taken.lower, ast.UnaryOp) and isinstance(taken.lower.op, ast.USub) else None


def _side_of_narrow(node: ast.AST | None) -> str | None:
    """Returns whether `x.narrow(dim, start, length)`, or `torch.narrow()`, takes the first or the last entries."""
    if not isinstance(node, ast.Call) or len(node.args) + len(node.keywords) < 3:
        return None
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    given = named or dict(zip(("length", "start"), reversed(node.args), strict=False))
    start, length = given.get("start"), given.get("length")
    if isinstance(start, ast.UnaryOp) and isinstance(start.op, ast.USub) and length is not None:
        return "last" if ast.dump(start.operand) == ast.dump(length) else None
    return "first" if isinstance(start, ast.Constant) and start.value == 0 else None


def _same_values(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns a tensor and those that it has its values from, by copies and detached aliases."""
    return _single_sources(facts, number, before, _SAME_VALUES)


def _single_sources(facts: TraceIndex, number: int, before: int, ops: frozenset[str] | None = None) -> set[int]:
    """Returns a tensor and those that it was made from by calls of one tensor, as `bank.T` and `bank[:10]` are."""
    found = {number}
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or (ops is not None and op_name(made) not in ops) or len(made.inputs) != 1:
            break
        number, before = made.inputs[0].tensor, made.index
        found.add(number)
    return found
