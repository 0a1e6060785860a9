"""Finds lines that keep the `.grad` of each of several passes, although the passes fill one tensor in turn."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import scope_around
from tensorlens.analysis.training.timeline import GRAD_READ, Moment, Training
from tensorlens.records.model import Backward, Call

_ADDING = frozenset(("append", "add", "insert", "setdefault"))
_MIN_READS = 2
_CLEARING = frozenset(
    ("Tensor.zero_", "torch._foreach_zero_", "Tensor.requires_grad_", "Tensor.detach_")
)  # zero_grad()
_VIEWS = frozenset(
    "detach data view view_as reshape flatten ravel contiguous squeeze unsqueeze t T mT transpose permute narrow "
    "getitem".split()
)
_NEAR = 1_000  # uses of one gradient


@dataclass(frozen=True, slots=True)
class KeptGradient:
    """A line that keeps a gradient which nothing reads before it is set to zero and filled again."""

    kept: Call
    cleared: Call
    filled: Backward
    read: Call  # reads the last gradient instead of each
    count: int  # reads of one line without a change in between


def kept_gradients(training: Training) -> Iterator[KeptGradient]:
    """Yields these lines, each once."""
    reported: set[int] = set()
    touched = _touched(training)
    fetches = {call.site for events in touched.values() for call in events if _is_fetch(call)}
    keeping = {site for site in fetches if _is_kept(training, site)}
    for leaf, events in touched.items():
        moments = [moment for moment in training.moments.get(leaf, ()) if moment.kind in ("fill", "clear")]
        for first, clear, fill, last in _lost(events, moments, keeping):
            reads = _reads_after(training, events, last)
            if first.site in reported or not reads:
                continue
            reported.add(first.site)
            yield KeptGradient(first, clear, fill, reads[0], len(reads))


def _touched(training: Training) -> dict[int, list[Call]]:
    """Maps each leaf whose `.grad` the script reads more than once to the calls that read the gradient, or a view of
    it. The calls that make these views are left out."""
    fetches = Counter(
        (call.inputs[0].tensor, call.site) for call in training.facts.calls if _is_fetch(call) and not call.within
    )
    leaves = {leaf for (leaf, _), count in fetches.items() if count > 1}
    found: dict[int, list[Call]] = {leaf: [] for leaf in leaves}
    owners = dict(training.gradient_of) if leaves else {}
    for call in training.facts.calls if leaves else ():
        if _is_fetch(call):
            if call.inputs[0].tensor in found:
                found[call.inputs[0].tensor].append(call)
            continue
        read = {owners.get(access.tensor) for access in call.inputs}
        if _makes_view(training, call) and len(read) == 1 and None not in read:
            owners.update({access.tensor: owners[call.inputs[0].tensor] for access in call.outputs})
            continue
        for leaf in read:
            if leaf in found:
                found[leaf].append(call)
    return found


def _makes_view(training: Training, call: Call) -> bool:
    """Returns whether a call gives another shape to the memory of the one tensor that it reads."""
    name = call.op.removesuffix(".__get__").rpartition(".")[2].strip("_")
    if name not in _VIEWS or call.writes or len(call.inputs) != 1 or len(call.outputs) != 1:
        return False
    memory = {training.facts.storage_of(each.tensor, call.index) for each in (*call.inputs, *call.outputs)}
    return len(memory) == 1 and None not in memory


def _is_fetch(call: Call) -> bool:
    return call.op == GRAD_READ and bool(call.inputs)


def _lost(events: list[Call], moments: list[Moment], keeping: set[int]) -> Iterator[tuple[Call, Call, Backward, Call]]:
    """Yields (read of `.grad` that a line keeps, in-place clearing, next pass, next read of the same line): nothing
    uses the gradient between the first two."""
    for place, call in enumerate(events):
        at = bisect_right(moments, call.index, key=lambda moment: moment.index)
        if not _is_fetch(call) or call.site not in keeping or len(moments) < at + 2:
            continue
        clear, fill = moments[at].event, moments[at + 1].event
        if not isinstance(clear, Call) or not clear.writes or not isinstance(fill, Backward):
            continue
        near = events[place + 1 : place + 1 + _NEAR]
        between = [each for each in near if each.index < clear.index and not _is_fetch(each)]
        later = next((each for each in near if each.index > fill.index and each.site == call.site), None)
        if all(each.op in _CLEARING for each in between) and later is not None and _is_fetch(later):
            yield call, clear, fill, later


def _is_kept(training: Training, site: int) -> bool:
    """Returns whether a line puts a `.grad`, or a view of it, into a list or a dict, or stores it to an item or an
    attribute; also by a variable."""
    span = training.facts.trace.sites[site].span
    scope = scope_around(training.facts, span.file, span.line)
    node = training.facts.names.syntax.node(span)
    if not isinstance(node, ast.Attribute):
        return False
    parts = list(ast.walk(scope))
    if any(_holds(part, node) for part in parts):
        return True
    assigned = (part for part in parts if isinstance(part, ast.Assign) and _viewed(part.value) is node)
    names = {target.id for each in assigned for target in each.targets if isinstance(target, ast.Name)}
    same = [each for each in parts if isinstance(each, ast.Name) and each.id in names]
    keeping = [part for part in parts if not isinstance(part, ast.Tuple)]  # a tuple may only be what is returned
    return any(_holds(part, each) for part in keeping for each in same)


def _viewed(node: ast.AST) -> ast.AST:
    """Returns the expression whose memory an expression has: `p.grad` for `p.grad.flatten()` and `p.grad.view(-1)[:8]`.

    The trace shows whether a call gave a view: where `reshape()` copies, it does not.
    """
    while True:
        method = node.func if isinstance(node, ast.Call) else node
        if isinstance(method, ast.Attribute) and method.attr in _VIEWS:
            node = method.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node


def _holds(node: ast.AST, item: ast.AST) -> bool:
    """Returns whether a part of the source keeps the value of an expression in a collection or an object."""
    if isinstance(node, ast.ListComp | ast.SetComp):
        return _viewed(node.elt) is item
    if isinstance(node, ast.DictComp):
        return _viewed(node.value) is item
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_viewed(each) is item for each in node.elts)
    if isinstance(node, ast.Dict):
        return any(_viewed(each) is item for each in node.values)
    if isinstance(node, ast.Call):
        is_adding = isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING
        return is_adding and any(_viewed(each) is item for each in node.args)
    is_stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute)
    return is_stored and _viewed(node.value) is item  # type: ignore[attr-defined]


def _reads_after(training: Training, events: list[Call], last: Call) -> list[Call]:
    """Returns the reads of one line of a gradient that nothing changes in between, without a new read of `.grad`."""
    memory = {training.facts.storage_of(access.tensor, last.index) for access in last.outputs}
    by_site: dict[tuple[int, str], list[Call]] = {}
    first = bisect_right(events, last.index, key=lambda call: call.index)
    for call in events[first : first + _NEAR]:
        if _is_fetch(call) or call.writes:
            break
        if any(training.facts.storage_of(access.tensor, call.index) in memory for access in call.inputs):
            by_site.setdefault((call.site, call.op), []).append(call)
    reads = max(by_site.values(), key=len, default=[])
    return reads if len(reads) >= _MIN_READS else []
