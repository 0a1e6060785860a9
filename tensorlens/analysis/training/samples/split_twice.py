"""Finds rows of a table to evaluate on that are a part of another permutation than the rows to train on.

Each permutation is cut at one place, so a part of one and the other part of the other one look as if they were apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_VIEWS = frozenset("getitem split chunk tensor_split narrow to long cpu cuda clone contiguous view reshape".split())
_TAKING = frozenset(("getitem", "index_select"))
_SEEDING = frozenset("set_rng_state fork_rng get_rng_state set_state initial_seed".split())
_MOST_ABOVE, _MOST_VIEWS, _NEAR = 1_000, 8, 80


@dataclass(frozen=True, slots=True)
class PartOfRows:
    """A call that takes rows of a table, of a part of a permutation of all of them."""

    taken: Call
    drawn: Call
    cut: Call
    rows: int  # of the part
    is_first: bool  # whether the part begins where the permutation does; the others end where it ends


@dataclass(frozen=True, slots=True)
class SplitTwice:
    """Rows that a pass uses, and rows that are evaluated later."""

    trained: PartOfRows
    evaluated: PartOfRows
    samples: int


def split_twice(training: MeasuredTraining) -> Iterator[SplitTwice]:
    """Yields the first of these, if the two permutations are known to differ.

    Where both ends of a permutation are trained on, or both are evaluated, it orders the rows and splits nothing. Where
    one end is trained on and the other one is evaluated, other rows may be evaluated to compare with these.
    """
    facts = training.facts
    trained = list(_trained(facts))
    tables = {part.taken.inputs[0].tensor for part, _, _ in trained}
    evaluated = [part for part in _taken(facts, tables) if part.taken.mode != "grad"]
    used_parts = {(part.drawn.site, part.is_first) for part, _, _ in trained}
    ends = {(part.drawn.index, part.is_first) for part in evaluated}
    is_ordered = any((site, not is_first) in used_parts for site, is_first in used_parts)
    if is_ordered or any((drawn, not is_first) in ends for drawn, is_first in ends):
        return
    own = {part.drawn.index for part, _, _ in trained}
    rests = ends | {(part.drawn.index, part.is_first) for part in _taken(facts, tables)}
    is_rest_used = any((part.drawn.index, not part.is_first) in rests for part, _, _ in trained)
    for part in evaluated:
        is_to_compare = is_rest_used and part.drawn.index not in own
        if is_to_compare or (part.drawn.site, part.is_first) in used_parts:  # or trained on as well
            continue
        call = part.taken
        samples = facts.tensor(part.drawn.outputs[0].tensor).shape[0]
        for other, used, leaves in trained:
            is_other = other.drawn.index != part.drawn.index and used < call.index
            is_rest = other.rows + part.rows == samples and other.is_first != part.is_first
            if is_other and other.taken.inputs[0] == call.inputs[0] and is_rest:
                is_same = not _begins_anew(training, used, call.index, leaves)
                if is_same and _runs(facts, call, leaves) and _differ(facts, other.drawn, part.drawn):
                    yield SplitTwice(other, part, samples)
                    return


def _taken(facts: TraceIndex, tables: set[int]) -> Iterator[PartOfRows]:
    """Yields the rows of tables that calls take."""
    for call in facts.calls if tables else ():
        is_taken = op_name(call) in _TAKING and call.inputs
        part = _part(facts, call) if is_taken and call.inputs[0].tensor in tables else None
        if part is not None:
            yield part


def _trained(facts: TraceIndex) -> Iterator[tuple[PartOfRows, int, set[int]]]:
    """Yields the rows that passes use, with the event of the pass and the parameters to which it gives gradients."""
    for backward in examined_passes(facts):
        leaves = {change.tensor for change in backward.gradients}
        for root in backward.roots:
            for _, made in ancestry(facts, root.tensor, backward.index, _MOST_ABOVE):
                part = _part(facts, made) if op_name(made) in _TAKING else None
                if part is not None:
                    yield part, backward.index, leaves


def _part(facts: TraceIndex, taken: Call) -> PartOfRows | None:
    """Returns the part of a permutation of all rows of a table that a call takes rows by."""
    if len(taken.inputs) != 2 or facts.tensor(taken.inputs[1].tensor).dtype != "int64":
        return None
    number, cut = taken.inputs[1].tensor, None
    for _ in range(_MOST_VIEWS):
        made = facts.creator(number)
        if made is None:
            return None
        if op_name(made) == "randperm":
            is_whole = facts.tensor(number).shape == facts.tensor(taken.inputs[0].tensor).shape[:1]
            rows = 0 if cut is None else facts.tensor(cut[1]).shape[0]
            if not is_whole or cut is None or not 0 < rows < facts.tensor(number).shape[0]:
                return None
            is_first = _is_first(facts, *cut)
            return None if is_first is None else PartOfRows(taken, made, cut[0], rows, is_first)
        is_some = op_name(made) in _TAKING and len(made.inputs) == 2  # of the rows of a part
        if not is_some and (op_name(made) not in _VIEWS or len(made.inputs) != 1):
            return None
        cut, number = (made, number), made.inputs[0].tensor
    return None


def _is_first(facts: TraceIndex, cut: Call, part: int) -> bool | None:
    """Returns whether a part of a permutation is the first one; None if it is neither this nor the last one."""
    if len(cut.outputs) > 1:
        places = [access.tensor for access in cut.outputs]
        return {places[0]: True, places[-1]: False}.get(part)
    node = facts.node_at(cut.site)
    bounds = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(bounds, ast.Slice) or bounds.step is not None or (bounds.lower is None) == (bounds.upper is None):
        return None
    return bounds.lower is None


def _begins_anew(training: MeasuredTraining, first: int, last: int, leaves: set[int]) -> bool:
    """Returns whether the model gets other values, but for those of steps, or another optimizer."""
    facts = training.facts
    if any(call.index < last for leaf in leaves for call in training.written_after(leaf, first)):
        return True
    for call in facts.calls_between(first, last):
        if call.within:
            continue
        changed = {write.tensor for write in call.writes} | {access.tensor for access in call.outputs}
        if call.op == DATA_SET:
            changed |= {access.tensor for access in call.inputs[:1]}
        if not leaves.isdisjoint(changed) or call.op.startswith("optim."):
            return True
    return False


def _runs(facts: TraceIndex, taken: Call, leaves: set[int]) -> bool:
    """Returns whether the trained model runs on rows right after they are taken."""
    near = facts.calls_between(taken.index + 1, taken.index + _NEAR)
    return any(access.tensor in leaves for call in near if not call.within for access in call.inputs)


def _differ(facts: TraceIndex, one: Call, other: Call) -> bool:
    """Returns whether two permutations are drawn one after the other by the numbers of all the program."""
    first, last = sorted((one.index, other.index))
    nodes = [facts.node_at(call.site) for call in (one, other)]
    words = [word.arg for node in nodes if isinstance(node, ast.Call) for word in node.keywords]
    is_seeded = any(first < seed.index <= last for seed in facts.trace.inspection.seeds)
    names = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute))
    is_known = all(isinstance(node, ast.Call) for node in nodes) and not any(
        last_name(each) in _SEEDING for each in names
    )
    return is_known and not is_seeded and {"generator", None}.isdisjoint(words)
