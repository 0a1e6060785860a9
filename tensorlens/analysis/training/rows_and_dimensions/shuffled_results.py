"""Finds results for the rows of a table that are kept in the order of a shuffle, and used in the order of the table.

So it is with pseudo-labels that a loop over a loader with `shuffle=True` joins, and that a new data set then pairs with
the samples as they are.
"""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import BY_PLACE
from tensorlens.analysis.training.shuffled_cumulations import draw_of_index, draw_of_loader
from tensorlens.records.model import Call

_JOINS = frozenset("cat concat concatenate hstack vstack row_stack".split())
_ROWS = BY_PLACE | frozenset("argmax argmin max amax sum mean squeeze unsqueeze view reshape one_hot softmax".split())
_CHOOSING = frozenset("topk argsort sort nonzero where argwhere".split())
_VIEWS = frozenset("squeeze flatten view reshape getitem long cpu clone contiguous flip unbind split chunk".split())
_COMPARING = frozenset("eq ne cross_entropy mse_loss kl_div l1_loss".split())
_SORTS = frozenset(("topk", "sort"))  # give the values first
_WHOLE = ("int64", "int32")
_ON_PURPOSE = frozenset(
    "neg negative negatives shuffled shuffle perm permuted marginal marginals mismatched wrong random null fake other "
    "others unpaired independent baseline chance".split()
)
_MIN_PAIRS = 8  # of items of a loader that follow each other: those of two samples may do so by chance
_MOST_RUNS, _MOST_CALLS, _FAR, _NEAR, _LOOKED_AT = 3, 200, 30_000, 8, 3


@dataclass(frozen=True, slots=True)
class ShuffledResults:
    """A call that keeps results, the draw of their order, and a call that uses them, or rows, in another order."""

    kept: Call
    drawn: Call
    used: Call
    table: int


@dataclass(slots=True)
class _Kept:
    """Tensors with results in the order of a shuffle, and what was read since."""

    call: Call
    drawn: Call
    tables: set[int]
    known: set[int]
    rows: int
    chosen: set[int] = field(default_factory=set)  # positions among the results
    # tensor -> index and table (-1: results) of the rows that it is computed from
    origins: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    results: int = 0  # of these, taken by number
    pairs: Counter[tuple[int, int]] = field(
        default_factory=Counter
    )  # two tables, of which a loader reads one item each
    read: deque[Call] = field(default_factory=lambda: deque(maxlen=_NEAR))  # the last calls that read some by number


def shuffled_results(facts: TraceIndex) -> Iterator[ShuffledResults]:
    """Yields these calls, one for each line that keeps results."""
    runs = Counter[int]()
    for call in facts.calls:
        if call.within or runs[call.site] >= _MOST_RUNS:
            continue
        kept = _joined(facts, call) if op_name(call) in _JOINS else None
        if op_name(call) == "setitem":
            kept = _written(facts, call)
        if kept is not None:
            runs[call.site] += 1
            found = None if _is_on_purpose(facts, kept) else _use(facts, kept)
            if found is not None:
                runs[call.site] = _MOST_RUNS
                yield found


def _joined(facts: TraceIndex, call: Call) -> _Kept | None:
    """Returns what a call joins, if it has one row for each row of a table, in batches of a shuffle."""
    rows = sum(facts.tensor(access.tensor).shape[:1][0] for access in call.inputs if facts.tensor(access.tensor).shape)
    result = call.outputs[0].tensor if call.outputs else -1
    is_plain = result >= 0 and len(call.inputs) > 1 and facts.tensor(result).shape[:1] == (rows,)
    if not is_plain or facts.requires_grad(result, call.index):
        return None
    parts = [access.tensor for access in call.inputs]
    return _shuffled(facts, call, [*parts[:_LOOKED_AT], parts[-1]], {result}, rows)


def _written(facts: TraceIndex, call: Call) -> _Kept | None:
    """Returns what a call writes to a slice of a new tensor, if it is of a batch of a shuffle."""
    node = facts.node_at(call.site)
    is_slice = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    shape = facts.tensor(call.inputs[0].tensor).shape if len(call.inputs) == 2 else ()
    if not is_slice or not shape or facts.tensor(call.inputs[1].tensor).shape[:1] in ((), shape[:1]):
        return None
    return _shuffled(facts, call, [call.inputs[1].tensor], {call.inputs[0].tensor}, shape[0])


def _shuffled(facts: TraceIndex, call: Call, parts: list[int], known: set[int], rows: int) -> _Kept | None:
    drawn, tables = None, set[int]()
    if _are_numbers(facts, parts[0], call.index):
        return None
    for number in parts:
        found = _order(facts, number, call.index)
        if found is None or (tables and not tables & found[1]):
            return None
        drawn, tables = found[0], found[1] if not tables else tables & found[1]
    tables = {each for each in tables if facts.tensor(each).shape[:1] == (rows,)}
    return _Kept(call, drawn, tables, known, rows) if drawn is not None and tables else None


def _are_numbers(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether values are numbers of rows, as they were taken from a table of these: the order itself."""
    for _ in range(_NEAR):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in _VIEWS | {"stack", "index_select", "detach", "to"}:
            return made is not None and op_name(made) == "arange"
        number, before = made.inputs[0].tensor, made.index
    return False


def _order(facts: TraceIndex, number: int, before: int) -> tuple[Call, set[int]] | None:
    """Returns the draw of the rows that the rows of a value are computed from, and their tables."""
    rows = facts.tensor(number).shape[:1]
    waiting, seen, tables, drawn = [(number, before)], set[int](), set[int](), None
    for each, limit in waiting:
        made = next(iter(facts.producers(each, limit)), None)
        if made is None or made.index in seen or facts.tensor(each).shape[:1] != rows or len(seen) > _MOST_CALLS:
            continue
        seen.add(made.index)
        inputs = [access.tensor for access in made.inputs]
        if op_name(made) in ("getitem", "index_select") and len(inputs) == 2:
            index = facts.tensor(inputs[1])
            draw = draw_of_index(facts, made) if index.dtype in _WHOLE and index.shape == rows else None
            drawn, tables = draw or drawn, tables | _beside(facts, made)
        elif op_name(made) == "stack" and (len(inputs),) == rows:
            items = [facts.creator(item) for item in inputs]
            taken = [item for item in items if item is not None and op_name(item) == "getitem"]
            is_whole = len(taken) == len(items) and len({item.inputs[0].tensor for item in taken}) == 1
            draw = draw_of_loader(facts, made) if is_whole else None
            drawn, tables = draw or drawn, tables | (_beside(facts, taken[0]) if is_whole else set())
        else:
            waiting += [(item, made.index) for item in inputs if not facts.is_leaf_requiring_grad(item, made.index)]
    return None if drawn is None else (drawn, tables)


def _beside(facts: TraceIndex, taken: Call) -> set[int]:
    """Returns the table that a call takes rows of, and those that lines beside it take the same rows of."""
    tables, index = {taken.inputs[0].tensor}, [access.tensor for access in taken.inputs[1:]]
    for call in facts.calls_between(taken.index - _NEAR, taken.index + _NEAR):
        if op_name(call) == "getitem" and len(call.inputs) == len(taken.inputs):
            is_same = index == [access.tensor for access in call.inputs[1:]]
            first, second = sorted((call, taken), key=lambda each: each.index)
            if is_same and (index or _is_same_item(facts, first, second)):
                tables.add(call.inputs[0].tensor)
    return tables


def _is_on_purpose(facts: TraceIndex, kept: _Kept) -> bool:
    """Returns whether results may be shuffled on purpose: by their name, or as their layer gets the whole table too."""
    names = " ".join(facts.trace.sites[kept.call.site].targets)
    if _ON_PURPOSE & set(words_of(names)):
        return True
    parts = [access.tensor for access in kept.call.inputs[-1:]]
    above = [call for each in parts for _, call in ancestry(facts, each, kept.call.index, _MOST_CALLS)]
    layers = {(op_name(call), access.tensor) for call in above for access in call.inputs[1:]}
    for call in facts.calls:
        inputs = [access.tensor for access in call.inputs]
        is_layer = op_name(call) not in ("getitem", "index_select") and inputs[:1] != []
        if is_layer and inputs[0] in kept.tables and any((op_name(call), each) in layers for each in inputs[1:]):
            return True
    return False


def _use(facts: TraceIndex, kept: _Kept) -> ShuffledResults | None:
    """Returns the first call that uses results with rows of the table, by a place that is one of the other."""
    for call in facts.calls_between(kept.call.index + 1, kept.call.index + _FAR):
        inputs = [access.tensor for access in call.inputs]
        is_own = call.site == kept.call.site
        if not is_own and (kept.known | kept.tables) & {write.tensor for write in call.writes}:
            return None  # they, or the rows of the table, may have been put into the order of the other
        of_results, of_table = (
            bool(kept.known & set(inputs)),
            next((each for each in inputs if each in kept.tables), -1),
        )
        name = op_name(call)
        is_same_shape = len({facts.tensor(each).shape for each in inputs}) == 1
        if of_results and of_table >= 0 and name in _COMPARING and (is_same_shape or name == "cross_entropy"):
            return ShuffledResults(kept.call, kept.drawn, call, of_table)
        if name in ("getitem", "index_select") and inputs and (inputs[0] in kept.known or inputs[0] in kept.tables):
            table = _taken(facts, kept, call, inputs)
        else:
            table = _met(facts, kept, call, inputs)
            if (of_results or kept.chosen & set(inputs)) and not call.writes:
                _follow(facts, kept, call, of_results)
        if table >= 0:
            return ShuffledResults(kept.call, kept.drawn, call, table)
    return None


def _taken(facts: TraceIndex, kept: _Kept, call: Call, inputs: list[int]) -> int:
    """Returns the table whose rows a loader pairs with results, or that chosen positions take; -1 if none is known."""
    is_result = inputs[0] in kept.known
    if len(inputs) == 2:
        if not is_result and inputs[1] in kept.chosen:
            return inputs[0]
        for access in call.outputs:
            kept.origins[access.tensor] = {(inputs[1], -1 if is_result else inputs[0])}
        return -1
    kept.results += is_result
    for earlier in kept.read:
        is_other = (earlier.inputs[0].tensor in kept.known) != is_result
        if is_other and earlier.site == call.site and _is_same_item(facts, earlier, call):
            table = earlier.inputs[0].tensor if is_result else inputs[0]
            kept.pairs[earlier.inputs[0].tensor, inputs[0]] += 1
            is_pair = kept.pairs[earlier.inputs[0].tensor, inputs[0]] >= kept.results - (not is_result)
            if is_pair and kept.results >= _MIN_PAIRS:
                return table
    kept.read.append(call)
    return -1


def _met(facts: TraceIndex, kept: _Kept, call: Call, inputs: list[int]) -> int:
    """Returns the table of which one index took rows that a loss compares with results that it took; -1 if none."""
    known = [kept.origins[each] for each in inputs if each in kept.origins]
    if not known:
        return -1
    joined = set[tuple[int, int]]().union(*known)
    if op_name(call) in _COMPARING and len(known) == 2:
        sides = known if any(table < 0 for _, table in known[1]) else known[::-1]
        of_results = {index for index, table in sides[1] if table < 0}
        found = [table for index, table in sides[0] if table >= 0 and index in of_results]
        if found and all(len(side) == 1 for side in sides):
            return found[0]
    rows = {facts.tensor(each).shape[:1] for each in inputs if each in kept.origins}
    for access in call.outputs if not call.writes else ():
        if {facts.tensor(access.tensor).shape[:1]} == rows != {()}:
            kept.origins[access.tensor] = joined
    return -1


def _is_same_item(facts: TraceIndex, one: Call, other: Call) -> bool:
    """Returns whether two calls get the item of one number, as those of a `TensorDataset` do."""
    sites = facts.trace.sites
    if one.site == other.site:
        return other.index == one.index + 1 and "Loader" in sites[one.site].through
    first, second = facts.node_at(one.site), facts.node_at(other.site)
    is_pair = isinstance(first, ast.Subscript) and isinstance(second, ast.Subscript)
    is_near = (
        facts.scope(one.site) == facts.scope(other.site) and sites[one.site].span.line == sites[other.site].span.line
    )
    return is_pair and is_near and ast.unparse(first.slice) == ast.unparse(second.slice)  # type: ignore[union-attr]


def _follow(facts: TraceIndex, kept: _Kept, call: Call, of_results: bool) -> None:
    """Notes what is computed row by row of results, and the positions that are chosen by them."""
    made = [access.tensor for access in call.outputs if facts.tensor(access.tensor).shape[:1] == (kept.rows,)]
    if of_results and op_name(call) in _CHOOSING and len(call.inputs) == 1:
        outputs = call.outputs[len(call.outputs) > 1 and op_name(call) in _SORTS :]
        kept.chosen |= {access.tensor for access in outputs if facts.tensor(access.tensor).dtype in _WHOLE}
    elif of_results and op_name(call) in _ROWS:
        kept.known |= {*made}
        kept.chosen |= {each for each in made if facts.tensor(each).dtype == "bool"}
    elif not of_results and op_name(call) in _VIEWS and call.inputs[0].tensor in kept.chosen and len(call.inputs) == 1:
        kept.chosen |= {access.tensor for access in call.outputs}
