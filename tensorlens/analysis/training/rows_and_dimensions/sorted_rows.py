"""Finds predictions in the order of a sort beside values of the same samples that are still in the order before it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from operator import attrgetter

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.row_starts import TAKING, Start, row_starts
from tensorlens.records.model import Backward, Call
from tensorlens.records.source import text_of

_CLASSES = ("cross_entropy", "nll_loss")  # of each row
_DOTS = ("dot", "vdot", "inner", "matmul", "rmatmul")
_MASKED = ("getitem", "masked_select")
_JOINING = frozenset(
    "mul rmul sub rsub add radd div truediv rtruediv where masked_fill mse_loss l1_loss smooth_l1_loss huber_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss poisson_nll_loss".split()
) | {*_CLASSES, *_DOTS, *_MASKED}  # fmt: skip
_LINEAR, _SUMS = frozenset("sub rsub add radd".split()), frozenset(("sum", "mean"))
_SORTING = frozenset(("argsort", "sort"))
_VIEWING = frozenset("squeeze flatten view reshape contiguous to detach cpu cuda flip".split())
_REORDERING = ("sort", "shuffle", "perm", "choice", "sample", "reverse", "flip", "order", "roll")
_NEAR, _FAR, _MAX_VIEWS = 12, 2_000, 6


@dataclass(frozen=True, slots=True)
class SortedRows:
    """A call that joins sorted predictions with values in the order before, and the calls that make both orders."""

    joined: Call
    taken: Call  # what puts the predictions, or the data that they are made of, into the order
    sort: Call
    other: int  # the input that is in the order before


def sorted_rows(facts: TraceIndex) -> Iterator[SortedRows]:
    """Yields these calls, one for each line that sorts predictions, or data that they are made of.

    The keys of the sort and the other values must be of the same samples, in one order, and the sort must change it.
    """
    if not facts.trace.inspection.sorted_keys:
        return
    reported = set[int]()
    for backward in _passes(facts):
        for call in recorded_above(facts, backward):
            if op_name(call) not in _JOINING or not 2 <= len(call.inputs) <= 3 or call.writes:
                continue
            is_free = op_name(call) in _LINEAR and _is_only_summed(facts, call, backward)
            for one, other in () if is_free else _pairs(facts, call):
                found = _joined(facts, call, one, other)
                if found is not None and found.taken.site not in reported:
                    reported.add(found.taken.site)
                    yield found


def _passes(facts: TraceIndex) -> Iterator[Backward]:
    """Yields the first passes of each line, and those after the sorts whose keys were measured.

    A long run keeps its last events only: then the first sorts, the ones that were measured, are not in the record.
    """
    found = {each.index: each for each in examined_passes(facts)}
    later = [each for each in facts.backwards if not each.failed and each.op != "autograd.grad"]
    for known in facts.trace.inspection.sorted_keys:
        place = bisect_left(later, known.index, key=attrgetter("index"))
        if place < len(later) and facts.call(known.index) is not None:
            found.setdefault(later[place].index, later[place])
    yield from found.values()


def _is_only_summed(facts: TraceIndex, call: Call, backward: Backward) -> bool:
    """Returns whether only sums or means of all elements of a sum or difference are used: these have no order."""
    number = call.outputs[0].tensor
    later = facts.calls_between(call.index + 1, backward.index)
    uses = [each for each in later if any(access.tensor == number for access in each.inputs)]
    made = [(op_name(each), facts.tensor(each.outputs[0].tensor).shape) for each in uses if each.outputs]
    summed = [name in _SUMS and not shape for name, shape in made]
    return len(summed) == len(uses) > 0 and all(summed)


def _pairs(facts: TraceIndex, call: Call) -> Iterator[tuple[int, int]]:
    """Yields inputs whose rows a call joins: a prediction, and what does not require grad."""
    name, tensors = op_name(call), [access.tensor for access in call.inputs]
    if name in _CLASSES or name in _MASKED:
        one, other = tensors[:2]
        if name in _MASKED:
            masks = facts.tensor(other).shape, facts.tensor(other).dtype
            if masks != (facts.tensor(one).shape, "bool"):
                return
        pairs = [(one, other)] if facts.tensor(one).shape[:1] == facts.tensor(other).shape[:1] else []
    else:
        pairs = [each for each in permutations(tensors, 2) if len({facts.tensor(part).shape for part in each}) == 1]
    for one, other in pairs:
        shape = facts.tensor(one).shape
        if not shape or shape[0] < 2 or (name in _DOTS and len(shape) > 1):
            continue
        if facts.requires_grad(one, call.index) and not facts.requires_grad(other, call.index):
            yield one, other


def _joined(facts: TraceIndex, call: Call, one: int, other: int) -> SortedRows | None:
    starts = row_starts(facts, one, call.index)
    sorts = [_sort_of(facts, each) for each in starts]
    take, sort = (starts[0].call, sorts[0]) if starts else (None, None)
    if take is None or sort is None or any(each is None or each.index != sort.index for each in sorts):
        return None  # of a mix of rows, a part is in the order before
    keys = sort.inputs[0].tensor
    key = row_starts(facts, keys, sort.index, _axis(facts, keys))
    beside = row_starts(facts, other, call.index)
    if not _moves(facts, sort, take) or not _all_together(facts, beside, key):
        return None
    data = take.inputs[0].tensor
    if facts.tensor(take.outputs[0].tensor).shape[:1] != facts.tensor(data).shape[:1]:
        return None
    if not facts.requires_grad(data, take.index):
        before = row_starts(facts, data, take.index)
        if _is_used_elsewhere(facts, sort, take) or not _all_together(facts, before, key):
            return None
    return SortedRows(call, take, sort, other)


def _axis(facts: TraceIndex, number: int) -> int:
    shape = facts.tensor(number).shape
    return shape.index(max(shape)) if shape else 0


def _sort_of(facts: TraceIndex, start: Start) -> Call | None:
    """Returns the sort of one row of keys whose order a call takes rows in."""
    if start.call is None or not start.is_taken:
        return None
    *_, made = _index_makers(facts, start.call)
    if made is None or op_name(made) not in _SORTING:
        return None
    keys = facts.tensor(made.inputs[0].tensor).shape
    rows = facts.tensor(start.call.inputs[0].tensor).shape[:1]
    return made if keys and (max(keys),) == rows and keys.count(1) == len(keys) - 1 else None


def _index_makers(facts: TraceIndex, take: Call) -> list[Call | None]:
    """Returns the calls that made the index of a call, from its last view to the first tensor."""
    made = facts.creator(take.inputs[1].tensor)
    found = [made]
    while made is not None and op_name(made) in _VIEWING and made.inputs and len(found) < _MAX_VIEWS:
        made = facts.creator(made.inputs[0].tensor)
        found.append(made)
    return found


def _moves(facts: TraceIndex, sort: Call, take: Call) -> bool:
    """Returns whether the order of a sort, or the reverse of it, is known to be another one than that before."""
    turns = sum(each is not None and op_name(each) == "flip" for each in _index_makers(facts, take))
    known = next((each for each in facts.trace.inspection.sorted_keys if each.index == sort.index), None)
    return known is not None and bool(known.along if turns % 2 else known.against)


def _is_used_elsewhere(facts: TraceIndex, sort: Call, take: Call) -> bool:
    """Returns whether anything else than a take of rows uses an order: it may put the rows back."""
    orders = {take.inputs[1].tensor, sort.outputs[-1].tensor}
    views = {each.index for each in _index_makers(facts, take) if each is not None}
    for call in facts.calls_between(sort.index + 1):
        uses = [at for at, access in enumerate(call.inputs) if access.tensor in orders]
        is_take = op_name(call) in TAKING and uses == [1] and not call.writes
        if uses and call.index not in views and not is_take:
            return True
    return False


def _all_together(facts: TraceIndex, some: Sequence[Start], others: Sequence[Start]) -> bool:
    """Returns whether all rows of a value are in the order of others."""
    return bool(some) and all(any(are_together(facts, one, other) for other in others) for one in some)


def are_together(facts: TraceIndex, one: Start, other: Start) -> bool:
    """Returns whether rows are in one order: of one tensor, taken with one index, or put together as one batch."""
    if one.tensor == other.tensor:
        return True
    if one.call is None or other.call is None:
        return False
    if one.is_collated and other.is_collated:
        return _is_one_batch(facts, one.call, other.call)
    if op_name(one.call) == op_name(other.call) and are_parts(facts, one, other):
        tensors = one.call.inputs[0].tensor, other.call.inputs[0].tensor
        first, second = (row_starts(facts, each, one.call.index) for each in tensors)
        return _all_together(facts, first, second)
    return one.is_taken and other.is_taken and one.call.inputs[1].tensor == other.call.inputs[1].tensor


def are_parts(facts: TraceIndex, one: Start, other: Start) -> bool:
    """Returns whether two calls take the same part of the rows of two tensors, by a slice or a split."""
    if one.call is None or other.call is None or len(one.call.inputs) != 1 or len(other.call.inputs) != 1:
        return False
    if facts.tensor(one.call.inputs[0].tensor).shape[:1] != facts.tensor(other.call.inputs[0].tensor).shape[:1]:
        return False
    if op_name(one.call) in ("split", "chunk"):
        places = [[each.tensor for each in part.call.outputs].index(part.tensor) for part in (one, other) if part.call]
        return places[0] == places[1] and len(one.call.outputs) == len(other.call.outputs)
    written = [_slice_of(facts, each) for each in (one.call, other.call)]
    return abs(one.call.index - other.call.index) <= _NEAR and written[0] == written[1] != ""


def _slice_of(facts: TraceIndex, call: Call) -> str:
    """Returns the slice of the first dimension that an index takes, as written."""
    node = facts.node_at(call.site)
    if op_name(call) != "getitem" or not isinstance(node, ast.Subscript):
        return ""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    return ast.unparse(first) if isinstance(first, ast.Slice) else ""


def _is_one_batch(facts: TraceIndex, one: Call, other: Call) -> bool:
    """Returns whether two calls put a batch together, in a loader or in a function of the script that sorts nothing."""
    if one.site == other.site:
        is_same = op_name(one) == op_name(other)
        is_near = abs(one.index - other.index) <= _NEAR and (not is_same or len(one.inputs) == len(other.inputs))
        return is_near and not any(op_name(each) in _text_at(facts, each) for each in (one, other))
    spans = facts.span(one.site), facts.span(other.site)
    if spans[0] is None or spans[1] is None or spans[0].file != spans[1].file:
        return False
    functions = [function_around(facts, span.file, span.line) for span in spans if span is not None]
    if functions[0] is None or functions[0] is not functions[1] or not _collates(facts, functions[0]):
        return False
    first, last = sorted((one.index, other.index))
    between = facts.calls_between(first + 1, last) if last - first <= _FAR else ()
    sites = {one.site, other.site}
    return last - first <= _FAR and not any(call.site in sites and call.index < last for call in between)


def _text_at(facts: TraceIndex, call: Call) -> str:
    span = facts.span(call.site)
    return "" if span is None else text_of(facts.trace.sources[span.file], span)


def _collates(facts: TraceIndex, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns whether a function puts samples together, as the batches of a loader, and nothing in it may change an
    order."""
    nodes = list(ast.walk(function))
    names = [getattr(node, "id", getattr(node, "attr", getattr(node, "arg", ""))) or "" for node in nodes]
    is_turned = any(isinstance(node, ast.Slice) and node.step is not None for node in nodes)
    if is_turned or any(word in name.lower() for name in names for word in _REORDERING):
        return False
    given = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.keyword))
    values = [node.value for node in given if node.arg == "collate_fn"]
    is_given = any(function.name in (getattr(each, "id", ""), getattr(each, "attr", "")) for each in values)
    return is_given or _takes_apart(function)


def _takes_apart(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Returns whether a function takes apart the samples that it is given, by `zip(*samples)`."""
    given = {each.arg for each in function.args.args}
    zipped = [n for n in ast.walk(function) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "zip"]
    starred = [each.args[0].value for each in zipped if len(each.args) == 1 and isinstance(each.args[0], ast.Starred)]
    return any(isinstance(each, ast.Name) and each.id in given for each in starred)
