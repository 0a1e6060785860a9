"""Finds columns of the data that no coupling layer of a flow changes, because all layers keep the same half.

A coupling layer changes one part of the columns by what it computes from the others, and joins the two. The next layer
must change the others, so a flow turns the columns round between two layers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.records.model import Call

_JOINS = frozenset("cat concat concatenate hstack".split())
_PARTS = frozenset("chunk split tensor_split".split())
_SAME = frozenset("contiguous clone to float detach".split())
_SQUARES = frozenset(("pow", "square"))
_CURVES = frozenset("tanh sigmoid exp neg clamp mul rmul squeeze".split())
_NORMALS = ("Normal.log_prob", "MultivariateNormal.log_prob", "Independent.log_prob")
_SUMS = frozenset(("sum", "mean"))
_BY_ELEMENT = frozenset("neg mul rmul div truediv sub rsub add radd float to clone pow".split())
_CONTEXT = frozenset("c ctx cls emb static given".split())  # words of names
_TARGETS = frozenset("y ys target targets output outputs label labels input inputs".split())  # beside a condition
_MOST_COLUMNS, _MAX_CALLS, _LEAST_JOINS, _MOST_TURNS = 512, 200, 2, 4
_Columns = tuple[int | None, ...]  # of each column, the one of the data that it equals; None: it is another value


@dataclass(frozen=True, slots=True)
class UnchangedColumns:
    """Columns of `data` that the last of several joins still has as they are, and a call that squares all."""

    joined: Call
    cut: Call  # takes them for the last join
    layers: int
    columns: int
    width: int
    used: Call


@dataclass(slots=True)
class _Way:
    """Follows the columns of tensors back to the data, and counts the joins."""

    facts: TraceIndex
    calls: int = 0

    def columns(self, number: int, before: int) -> tuple[int, int, _Columns] | None:
        """Returns (data, joins, columns) of a tensor of two dimensions; None if it is not known."""
        self.calls += 1
        made = next(iter(self.facts.producers(number, before)), None)
        shape = self.facts.tensor(number).shape
        if len(shape) != 2 or not 1 < shape[1] <= _MOST_COLUMNS or self.calls > _MAX_CALLS:
            return None
        name = "" if made is None else op_name(made)
        if made is not None and name in _SAME and len(made.inputs) == 1:
            return self.columns(made.inputs[0].tensor, made.index)
        if made is not None and name in _JOINS and len(made.inputs) > 1:
            return self._joined(made)
        if made is not None and name == "flip" and len(made.inputs) == 1 and _is_along_last(self.facts, made):
            found = self.columns(made.inputs[0].tensor, made.index)
            return None if found is None else (*found[:2], found[2][::-1])
        return number, 0, tuple(range(shape[1]))

    def _joined(self, made: Call) -> tuple[int, int, _Columns] | None:
        parts = [self._part(access.tensor, made) for access in made.inputs]
        known = [each for each in parts if each is not None]
        shape = self.facts.tensor(made.outputs[0].tensor).shape
        if not known or len({each[0] for each in known}) > 1:
            return None
        widths = [self.facts.tensor(access.tensor).shape[1:] for access in made.inputs]
        columns: list[int | None] = []
        for part, width in zip(parts, widths, strict=True):
            columns += part[2] if part is not None else [None] * sum(width)
        whole = self.facts.tensor(known[0][0]).shape[1:] == shape[1:] and len(columns) == shape[1]
        return (known[0][0], known[0][1] + 1, tuple(columns)) if whole else None

    def _part(self, number: int, user: Call) -> tuple[int, int, _Columns] | None:
        """Returns the columns of a part that a call takes of a tensor; None if it was computed."""
        cut = _cut_of(self.facts, number, user.index)
        if cut is None:
            return None
        whole, size = self.facts.tensor(cut.inputs[0].tensor).shape, self.facts.tensor(number).shape
        start = _start(self.facts, cut, number)
        if len(whole) != 2 or len(size) != 2 or size[0] != whole[0] or start is None:
            return None
        found = self.columns(cut.inputs[0].tensor, cut.index)
        return None if found is None else (*found[:2], found[2][start : start + size[1]])


def unchanged_columns(facts: TraceIndex) -> Iterator[UnchangedColumns]:
    """Yields these columns, one for each line that joins."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        for call in above:
            if not call.inputs or not (_is_density(facts, call) or (_squares(call) and _adds_scales(facts, above))):
                continue
            joined = _last_join(facts, call)
            if joined is None or joined.site in reported or not _is_added_whole(facts, call, backward.index):
                continue
            found = _Way(facts).columns(call.inputs[0].tensor, call.index)
            if found is None or found[1] < _LEAST_JOINS or facts.requires_grad(found[0], call.index):
                continue  # an earlier layer may have changed what a line puts in another order
            kept = sum(each is not None for each in found[2])
            cuts = [_cut_of(facts, access.tensor, joined.index) for access in joined.inputs]
            cut = next((each for each in cuts if each is not None), None)
            if 0 < kept < len(found[2]) and cut is not None and not _is_context(facts, cut):
                reported.add(joined.site)
                yield UnchangedColumns(joined, cut, found[1], kept, len(found[2]), call)


def _last_join(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the join that made the input of a call, whose columns may have been turned round since."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MOST_TURNS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) in _JOINS:
            return made
        if op_name(made) not in _SAME | {"flip"} or len(made.inputs) != 1:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _cut_of(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that took a part of the columns of a tensor."""
    made = next(iter(facts.producers(number, before)), None)
    is_cut = made is not None and (op_name(made) in _PARTS or op_name(made) == "getitem") and len(made.inputs) == 1
    return made if is_cut else None


def _start(facts: TraceIndex, cut: Call, number: int) -> int | None:
    """Returns the first column that a call takes."""
    width = facts.tensor(cut.inputs[0].tensor).shape[-1]
    sizes = [facts.tensor(access.tensor).shape[-1] for access in cut.outputs]
    if op_name(cut) in _PARTS:
        place = [access.tensor for access in cut.outputs].index(number)
        return sum(sizes[:place]) if sum(sizes) == width else None
    node = facts.node_at(cut.site)
    index = node.slice if isinstance(node, ast.Subscript) else None
    last = index.elts[-1] if isinstance(index, ast.Tuple) and len(index.elts) == 2 else None
    if not isinstance(last, ast.Slice) or last.step is not None or (last.lower is None) == (last.upper is None):
        return None
    return 0 if last.lower is None else width - sizes[0]


def _is_density(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call is the part of the density of a normal distribution that takes its argument."""
    return facts.trace.sites[call.site].through in _NORMALS and op_name(call) == "sub"


def _squares(call: Call) -> bool:
    name, inputs = op_name(call), [access.tensor for access in call.inputs]
    return name in _SQUARES or (name == "mul" and len(inputs) == 2 and inputs[0] == inputs[1])


def _is_added_whole(facts: TraceIndex, call: Call, end: int) -> bool:
    """Returns whether the result of a call is added up over all columns, and no line takes some of them before."""
    if facts.trace.sites[call.site].through in _NORMALS[1:]:
        return True  # it adds the columns itself
    values, shape = {access.tensor for access in call.outputs}, facts.tensor(call.outputs[0].tensor).shape
    is_added = False
    for each in facts.calls_between(call.index, end):
        inputs = [access.tensor for access in each.inputs]
        if values.isdisjoint(inputs):
            continue
        others = [facts.tensor(number).shape for number in inputs if number not in values]
        if op_name(each) in _SUMS and len(inputs) == 1:
            is_added = True
        elif op_name(each) in _BY_ELEMENT and not any(other[-1:] == shape[-1:] for other in others):
            values |= {access.tensor for access in each.outputs}
        else:
            return False
    return is_added


def _is_context(facts: TraceIndex, cut: Call) -> bool:
    """Returns whether the parts of a cut have a name of a condition, which a flow carries on as it is."""
    words = [word for name in facts.trace.sites[cut.site].targets for word in words_of(name)]
    if {*words} & _TARGETS:
        return True
    return any(word in _CONTEXT or word.startswith(("cond", "context", "label", "embed")) for word in words)


def _adds_scales(facts: TraceIndex, above: tuple[Call, ...]) -> bool:
    """Returns whether the loss has a sum of logarithms of scales, the log-determinant of a flow. Other models that
    carry columns on, as a system with a constant, may be meant to."""
    scales, added = set[int](), set[int]()
    for call in above:
        if op_name(call) in ("exp", "sum") and call.inputs:
            (scales if op_name(call) == "exp" else added).update(_before(facts, call))
    return bool(scales & added)


def _before(facts: TraceIndex, call: Call) -> Iterator[int]:
    """Yields the input of a call, and the tensors that curves made it of."""
    number, before = call.inputs[0].tensor, call.index
    for _ in range(_MOST_TURNS):
        yield number
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _CURVES or len(made.inputs) != 1:
            return
        number, before = made.inputs[0].tensor, made.index


def _is_along_last(facts: TraceIndex, call: Call) -> bool:
    node = facts.node_at(call.site)
    text = ast.unparse(node) if isinstance(node, ast.Call) else ""
    return any(end in text for end in ("flip(1)", "flip(-1)", "[1])", "[-1])", "(1,))", "(-1,))", "dims=[1]", "fliplr"))
