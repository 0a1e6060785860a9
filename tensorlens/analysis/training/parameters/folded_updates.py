"""Finds parameters that no step trains, and to which a line adds what other parameters give, again and again.

So it is where `eval()` adds a low-rank update to the weights below it, and nothing takes it out again, or where loaded
values have the update in them already.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tensorlens.analysis.code_around import scope_around, statement_at
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_SUMS = frozenset(("add", "iadd", "sub", "isub", "addmm", "baddbmm", "addr", "addmv"))
_TAKING = frozenset(("sub", "isub"))
_COPYING = frozenset(("deepcopy", "clone", "detach", "requires_grad"))
_MAX_CALLS = 32
_MAX_COPIES = 4
_FEWEST_AGAIN = 2  # times that a line adds twice in a row, where another line takes out


@dataclass(frozen=True, slots=True)
class Loaded:
    """A call that copies earlier values of a parameter back into it, and the call that kept these."""

    load: Call
    kept: Call
    kept_at: int  # the index at which the parameter had these values


@dataclass(frozen=True, slots=True)
class FoldedUpdate:
    """A parameter, the calls of the line that adds to it and of the line that takes out again, and what they add."""

    row: ParameterRow
    adding: tuple[Call, ...]
    taking: tuple[Call, ...]
    again: int  # how often it adds with nothing taken out since it last did
    loaded: Loaded | None  # the load of values that have in them what the next change adds
    added: frozenset[int]  # parameters


def folded_updates(training: MeasuredTraining) -> Iterator[FoldedUpdate]:
    facts = training.facts
    steps = [step.index for step in training.training.steps]
    if not steps or training.training.is_hidden or facts.trace.inspection.switches or not is_complete(facts.trace):
        return
    last = {
        number: step.index
        for step in training.training.steps
        for number, gradient in zip(step.parameters, step.gradients, strict=True)
        if gradient is not None
    }
    trained = {storage: number for number in last for storage in facts.storages_of(number)}
    for row in training.rows:
        since = last.get(row.tensor, steps[0])
        writes = [] if row.requires_grad else _without_ends(facts, training.writes(row.tensor, since=steps[0]))
        folded = _folded(training, row, [call for call in writes if call.index > since], trained)
        if folded is not None and _run_between(steps, folded):
            yield folded


def _folded(
    training: MeasuredTraining, row: ParameterRow, writes: list[Call], trained: dict[int, int]
) -> FoldedUpdate | None:
    """Looks at the writes to a parameter: those of one line, or of two of which one takes out what the other adds.
    What is written before the first addition, and loads of earlier values, are left out."""
    facts = training.facts
    sums = {call.index: _sum(facts, row.tensor, call) for call in writes}
    first = next((place for place, call in enumerate(writes) if sums[call.index] is not None), len(writes))
    loads = {each.load.index: each for each in _loads(facts, row.tensor, writes[first:])}
    writes = [call for call in writes[first:] if call.index not in loads]
    sites = list(dict.fromkeys(call.site for call in writes))
    groups = [[call for call in writes if call.site == site] for site in sites]
    if len(writes) < 2 or len(groups) > 2 or not all(sums[call.index] is not None for call in writes):
        return None
    if not all(_is_fixed_line(facts, group[0]) for group in groups):
        return None
    adding = max(groups, key=len)
    taking = [call for call in writes if call.site != adding[0].site]
    again = sum(one.site == other.site == adding[0].site for one, other in pairwise(writes))
    opposite = {_takes(facts, sums[call.index]) for call in adding} ^ {_takes(facts, sums[c.index]) for c in taking}
    if taking and len(opposite) != 2:
        return None
    loaded = _loaded_in_vain(adding, taking, loads) if taking else None
    if loaded is None and (loads or (taking and again < _FEWEST_AGAIN)):
        return None
    added = [_computed_from(facts, row.tensor, sums[call.index] or call, trained) for call in adding]
    if any(each != added[0] for each in added):
        return None
    if not all(added) or not _is_read(training, row, writes) or _begin_again(training, adding, added[0], loaded):
        return None
    if _is_sum_of_parts(training, row, adding[0], added[0]):
        return None
    return FoldedUpdate(row, tuple(adding), tuple(taking), again, loaded, frozenset(added[0]))


def _is_sum_of_parts(training: MeasuredTraining, row: ParameterRow, first: Call, added: set[int]) -> bool:
    """Returns whether zeros become the sum of one other parameter at several times, as for an average or boosting."""
    facts = training.facts
    earlier = [call for call in training.written_after(row.tensor, -1) if call.index < first.index]
    began = earlier[-1] if earlier else facts.creator(row.tensor)
    if began is not None and began.op == "nn.Parameter" and began.inputs:
        began = facts.creator(began.inputs[0].tensor)
    shapes = [facts.tensor(number).shape for number in added]
    is_zeroed = began is not None and op_name(began) in ("zeros", "zero", "zeros_like", "new_zeros")
    return is_zeroed and shapes == [facts.tensor(row.tensor).shape]


def _loads(facts: TraceIndex, number: int, writes: list[Call]) -> Iterator[Loaded]:
    """Yields the writes that copy earlier values of the parameter itself back into it."""
    own = facts.storages_of(number)
    for load in (call for call in writes if op_name(call) == "copy"):
        source, before, kept = load.inputs[-1].tensor, load.index, None
        for _ in range(_MAX_COPIES):
            made = next(iter(facts.producers(source, before)), None)
            if made is None or op_name(made) not in _COPYING or not made.inputs:
                break
            kept = kept or made
            source, before = made.inputs[0].tensor, made.index
            if facts.storage_of(source, before) in own:
                yield Loaded(load, kept, made.index)
                break


def _loaded_in_vain(adding: list[Call], taking: list[Call], loads: dict[int, Loaded]) -> Loaded | None:
    """Returns the load after which a line adds what the loaded values have in them, if before it adds only what is not
    in."""
    added, taken = {call.index for call in adding}, {call.index for call in taking}
    held, last = 0, None
    had: list[tuple[int, int]] = [(0, 0)]  # from each index on, how many times the values have the update in them
    for index in sorted({*added, *taken, *loads}):
        if index in loads:
            last = loads[index]
            held = had[bisect_left(had, (last.kept_at, 0)) - 1][1]
        else:
            held += 1 if index in added else -1
            if held not in (0, 1):
                return last if held == 2 else None
        had.append((index, held))
    return None


def _begin_again(training: MeasuredTraining, adding: list[Call], added: set[int], loaded: Loaded | None) -> bool:
    """Returns whether the script writes to what it adds between two additions, as a method that folds an update in and
    begins with a new one. A load of values that were kept together with those of the weights is no such beginning."""
    for number in added:
        between = [call for call in training.writes(number) if adding[0].index < call.index < adding[-1].index]
        loads = [] if loaded is None else [each.kept.site for each in _loads(training.facts, number, between)]
        if between and (loaded is None or loads != [loaded.kept.site] * len(between)):
            return True
    return False


def _run_between(steps: list[int], folded: FoldedUpdate) -> bool:
    """Returns whether steps run between the changes of one line, or some steps between those of two."""
    places = [bisect_left(steps, call.index) for call in folded.adding]
    between = [one < other for one, other in pairwise(places)]
    return any(between) if folded.taking else all(between)


def _without_ends(facts: TraceIndex, writes: list[Call]) -> list[Call]:
    """Leaves out the assignments that a `+=` on `.data` ends with: they are on the line of a change."""
    changes = [call for call in writes if call.op != DATA_SET]
    return [
        call for call in writes if call.op != DATA_SET or not any(facts.same_line(call.site, c.site) for c in changes)
    ]


def _sum(facts: TraceIndex, number: int, write: Call) -> Call | None:
    """Returns the call that computes a sum of a parameter and another value, which a write gives to the parameter."""
    if op_name(write) in _SUMS:
        node = facts.names.syntax.node(facts.trace.sites[write.site].span)
        scales = isinstance(node, ast.Call) and any(each.arg == "beta" for each in node.keywords)
        return write if _given(write) > 1 and not scales else None
    if write.op != DATA_SET and op_name(write) != "copy":
        return None
    made = facts.creator(write.inputs[-1].tensor)
    if made is None or op_name(made) not in _SUMS or not facts.same_line(made.site, write.site):
        return None
    own = facts.storages_of(number)
    is_own = bool(made.inputs) and facts.storage_of(made.inputs[0].tensor, made.index) in own
    return made if is_own and len(made.inputs) > 1 else None


def _takes(facts: TraceIndex, call: Call | None) -> bool:
    """Returns whether a line writes what it adds with a minus: `-=`, `alpha=-1`, `+= -delta`."""
    if call is None:
        return False
    node = facts.names.syntax.node(facts.trace.sites[call.site].span)
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.Call):
        parts = [*node.args, *(each.value for each in node.keywords if each.arg == "alpha")]
    elif isinstance(node, ast.BinOp):
        parts = [node.right]
    elif isinstance(node, ast.AugAssign):
        parts = [node.value]
    signs = sum(isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub) for each in parts)
    return (op_name(call) in _TAKING) ^ (signs % 2 == 1)


def _is_fixed_line(facts: TraceIndex, write: Call) -> bool:
    """Returns whether what a line adds has no number of the function, such as a sign, that could make it take the rest
    out again."""
    span = facts.span(write.site)
    statement = None if span is None else statement_at(facts, span.file, span.line)
    if span is None or statement is None:
        return False
    own = {
        node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    changing = _changing(facts.tree(span.file)) - own
    return _is_fixed(scope_around(facts, span.file, span.line), statement, changing)


def _changing(tree: ast.Module) -> set[str]:
    """Returns the names of attributes that are set outside constructors, and of variables that functions declare to be
    global."""
    found = {"training", "next"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, ast.FunctionDef) and node.name != "__init__":
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
            found |= {each.attr for each in stored if isinstance(each.ctx, ast.Store) and each.attr != "data"}
    return found


def _is_fixed(scope: ast.AST, read_by: ast.AST, changing: set[str], depth: int = 3) -> bool:
    """Returns whether no number that changes is read: no argument and no variable, but for objects whose attributes
    are read, and for a variable that one line computes without such numbers."""
    written = {node for node in ast.walk(read_by) if isinstance(getattr(node, "ctx", None), ast.Store)}
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(read_by) if node not in written}
    if names & changing:
        return False
    arguments = {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)}
    stored = [node.id for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    values = {
        node.targets[0].id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    objects = {node.value for node in ast.walk(read_by) if isinstance(node, ast.Attribute)}
    for node in ast.walk(read_by):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node in objects:
            continue
        if node.id in arguments:
            return False
        is_computed_once = depth > 0 and stored.count(node.id) == 1 and node.id in values
        if node.id in stored and not (is_computed_once and _is_fixed(scope, values[node.id], changing, depth - 1)):
            return False
    return True


def _given(call: Call) -> int:
    """Returns the number of inputs of a call without that of `out=`, which a function, and no method, writes to."""
    is_out = call.op.startswith("torch.") and {each.tensor for each in call.writes} & {call.inputs[-1].tensor}
    return len(call.inputs) - bool(is_out)


def _computed_from(facts: TraceIndex, number: int, call: Call, trained: dict[int, int]) -> set[int]:
    """Returns the trained parameters that the other summand was computed from; none if it depends on the parameter
    itself, as in the update of an average, or on anything else, as on data. `trained` has them by their storages."""
    own, found, seen = facts.storages_of(number), set[int](), 0
    waiting = [(access.tensor, call.index) for access in call.inputs[1 : _given(call)]]
    if len(waiting) == 1 and facts.storage_of(waiting[0][0], call.index) in trained:
        return set()  # a sum of parameters, as for an average
    for each, before in waiting:
        place = facts.storage_of(each, before)
        if place in own:
            return set()
        if place in trained:
            found.add(trained[place])
            continue
        made, seen = next(iter(facts.producers(each, before)), None), seen + 1
        if seen > _MAX_CALLS or ((made is None or not made.inputs) and prod(facts.tensor(each).shape) > 1):
            return set()
        waiting += [] if made is None else [(access.tensor, made.index) for access in made.inputs]
    return found


def _is_read(training: MeasuredTraining, row: ParameterRow, writes: list[Call]) -> bool:
    """Returns whether a call elsewhere reads the parameter after its second change."""
    facts, own = training.facts, training.facts.storages_of(row.tensor)
    sites = {call.site for call in writes}
    return any(
        call.site not in sites and any(facts.storage_of(access.tensor, call.index) in own for access in call.inputs)
        for call in facts.calls_between(writes[1].index + 1)
    )
