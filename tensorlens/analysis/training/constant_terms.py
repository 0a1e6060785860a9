"""Finds terms of a loss that are constants to backward, although they were computed from what the loss trains.

A constant that is added to a loss changes no gradient, whatever its value. So only sums count here: a constant that the
rest of the loss is multiplied by, or compared with, is a weight or a target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.plain_values import may_require_grad, takes_shape_only
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call

SUMS = ("add", "sub", "iadd", "isub", "radd", "rsub", "stack", "cat", "hstack", "concat")
LINEAR = (
    "mul", "rmul", "imul", "div", "truediv", "itruediv", "idiv", "true_divide", "neg", "sum", "mean", "squeeze", "view",
    "reshape", "flatten", "clone", "float", "double", "to",
)  # fmt: skip
_ALIASES = {
    "expit": "sigmoid", "spmm": "mm", "multiply": "mul", "subtract": "sub", "negative": "neg", "concatenate": "cat",
}  # fmt: skip
_TRANSPOSED = ("T", "mT", "H", "mH")  # properties, "Tensor.T.__get__"
_GRAD = "autograd.grad"
_MOST_AFTER = 4_000  # calls that are looked at after a pass that returns gradients
MAX_PASSES = 8  # of one line that are looked at
Kind = Literal["gradient", "recording off", "dtype", "number"]


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A single number that `added` made a part of the root of `backward`, and that leads to no trained parameter."""

    backward: Backward
    added: Call
    term: int
    cut: Call  # where the term lost its history
    kind: Kind
    trained: tuple[int, ...]  # parameters that the term was computed from and that this pass gave used gradients


def constant_terms(training: Training) -> Iterator[ConstantTerm]:
    """Yields the constant terms, each place once."""
    reported: set[tuple[int, int]] = set()
    passes: Counter[int] = Counter()
    for backward in training.facts.backwards:
        passes[backward.site] += 1
        if backward.failed or backward.op == "autograd.grad" or passes[backward.site] > MAX_PASSES:
            continue
        used = trained_by(training, backward)
        terms = _terms(training.facts, backward, used) if used else []
        if any(_is_detached(training.facts, added, term) for added, term in terms):
            continue  # the pass differentiates an estimate, which has one value and the gradient of another
        for added, term in terms:
            found = _explained(training, backward, (added, term), used)
            if found is not None and (added.site, found.cut.site) not in reported:
                reported.add((added.site, found.cut.site))
                yield found


def trained_by(training: Training, backward: Backward) -> set[int]:
    """Returns the parameters whose gradient of a backward pass an optimizer used before it was cleared.

    Of a pass that returns gradients, those that a line changes by them before the next pass of the line.
    """
    if backward.op == _GRAD:
        return _changed_by_hand(training.facts, backward)
    used: set[int] = set()
    for change in backward.gradients:
        later = (m for m in training.moments.get(change.tensor, ()) if m.index > backward.index)
        first = next((m.kind for m in later if m.kind in ("clear", "update")), None)
        if first == "update" and change.tensor in training.stepped:
            used.add(change.tensor)
    return used


def _changed_by_hand(facts: TraceIndex, backward: Backward) -> set[int]:
    """Returns the leaves that a pass was asked for the gradients of, and that a call then writes to, or computes their
    next values of by these."""
    asked = facts.event(backward.index + 1)
    if not isinstance(asked, Call) or asked.op != _GRAD:
        return set()
    later = (each.index for each in facts.backwards if each.site == backward.site and each.index > backward.index)
    known, found = {access.tensor for access in asked.outputs}, set[int]()
    memory = {facts.storage_of(number, backward.index): number for number in backward.inputs}
    memory.pop(None, None)
    for call in islice(facts.calls_between(asked.index + 1, next(later, facts.calls[-1].index)), _MOST_AFTER):
        inputs = {access.tensor for access in call.inputs}
        if not inputs & known:
            continue
        found |= {memory.get(facts.storage_of(write.tensor, call.index), -1) for write in call.writes} - {-1}
        if op_name(call) in ("sub", "add", "addcmul", "addcdiv"):
            found |= inputs & set(backward.inputs)
        known |= {access.tensor for access in call.outputs} - found
    return found


def _terms(facts: TraceIndex, backward: Backward, used: set[int]) -> list[tuple[Call, int]]:
    """Lists the single numbers that the roots are sums of and that lead to no used parameter, with the calls that added
    them."""
    sums = _sums(facts, backward, lambda call, number: _leads_elsewhere(facts, number, call.index, used))
    return [(call, number) for call, constant in sums for number in constant if is_number(facts, number)]


def sums_below(facts: TraceIndex, backward: Backward) -> Iterator[Call]:
    """Yields the sums that the roots of a pass are, or are made from by sums and products with constants."""
    return (call for call, _ in _sums(facts, backward, lambda call, number: False))


def _sums(
    facts: TraceIndex, backward: Backward, is_constant: Callable[[Call, int], bool]
) -> Iterator[tuple[Call, list[int]]]:
    """Yields these sums, each with its terms that have no history, or that count as constants."""
    waiting, seen = [(root.tensor, backward.index) for root in backward.roots], set[int]()
    for number, before in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or call.index in seen or len(seen) > MAX_CALLS:
            continue
        seen.add(call.index)
        inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
        with_history = [number for number in inputs if facts.requires_grad(number, call.index - 1)]
        if op_name(call) in SUMS:
            constant = [number for number in inputs if number not in with_history or is_constant(call, number)]
            yield call, constant
            waiting += [(number, call.index) for number in with_history if number not in constant]
        elif op_name(call) in LINEAR and len(with_history) == 1:
            waiting.append((with_history[0], call.index))


def _leads_elsewhere(facts: TraceIndex, number: int, before: int, used: set[int]) -> bool:
    """Returns whether the graph of a single number leads to no used parameter, as if it were computed from inputs that
    require grad and from gradients without a graph."""
    return bool(_gradients(facts)) and is_number(facts, number) and not used & graph_leaves(facts, number, before)


def _gradients(facts: TraceIndex) -> list[Backward]:
    """Lists the passes that returned gradients without a graph."""
    return [event for event in facts.backwards if event.op == "autograd.grad" and not event.create_graph]


def op_name(call: Call) -> str:
    """Returns the last part of an op's name, without underscores: "add" for `Tensor.add_`.

    Of two names for one function it is the usual one: "sigmoid" for `torch.special.expit`.
    """
    return _op_name(call.op)


@cache
def _op_name(op: str) -> str:
    before, _, last = op.rpartition(".")
    name = last.strip("_")
    if name == "get" and before.rpartition(".")[2] in _TRANSPOSED:
        return before.rpartition(".")[2]
    return _ALIASES.get(name, name)


def is_number(facts: TraceIndex, number: int) -> bool:
    """Returns whether a tensor is a single number that may have a gradient."""
    tensor = facts.tensor(number)
    return may_require_grad(tensor) and all(size == 1 for size in tensor.shape)


def _explained(training: Training, backward: Backward, place: tuple[Call, int], used: set[int]) -> ConstantTerm | None:
    """Finds the call that took a term out of the graph; None if the script asked for it, or if it does no harm.

    It does no harm unless the term was computed from parameters that this pass trains, with the values that they still
    have: what was computed before a step, as an importance of weights for an earlier task, can only be a constant.
    """
    added, term = place
    facts = training.facts
    cuts = history_lost_at(facts, term, added.index)
    kinds = [_kind(facts, call) for call, _ in cuts]
    if not cuts or None in kinds:
        return None
    trained = [
        {n for n in used & graph_leaves(facts, source, call.index) if not _is_updated(training, n, call, backward)}
        for call, source in cuts
    ]
    call, kind = next(((cuts[n][0], kinds[n]) for n in range(len(cuts)) if trained[n]), (added, None))
    if kind is None:
        return None
    return ConstantTerm(backward, added, term, call, kind, tuple(sorted(set[int]().union(*trained))))


def _is_updated(training: Training, number: int, since: Call, backward: Backward) -> bool:
    """Returns whether a parameter was updated between a call and a pass."""
    moments = training.moments.get(number, ())
    return any(m.kind == "update" and since.index < m.index < backward.index for m in moments)


def _is_detached(facts: TraceIndex, added: Call, term: int) -> bool:
    """Returns whether the script itself took a term without a history out of the graph."""
    cuts = [] if facts.requires_grad(term, added.index) else history_lost_at(facts, term, added.index)
    return any(_kind(facts, call) is None for call, _ in cuts)


def history_lost_at(facts: TraceIndex, term: int, before: int) -> list[tuple[Call, int]]:
    """Returns the calls at which what a term was computed from lost its history, each with an input that had one.

    Behind a call that lost that of its weights, with gradients off, only values that were computed with them on count.
    """
    cuts: list[tuple[Call, int]] = []
    waiting, seen = [(term, before, False)], set[int]()
    for number, limit, is_behind in waiting:
        for call in facts.producers(number, limit)[:1]:
            if call.index in seen or len(seen) > MAX_CALLS or takes_shape_only(call):
                continue
            seen.add(call.index)
            with_history = [a.tensor for a in call.inputs if facts.requires_grad(a.tensor, call.index - 1)]
            lost = with_history if not facts.requires_grad(number, call.index) else []
            computed = [each for each in lost if not facts.is_leaf_requiring_grad(each, call.index - 1)]
            cuts += [(call, source) for source in (computed if is_behind else lost)[:1]]
            further = call.inputs if not lost or call.mode != "grad" else ()
            inputs = [access.tensor for access in further if access.tensor not in lost]
            waiting += [(each, call.index, is_behind or bool(lost)) for each in inputs]
    return cuts


def _kind(facts: TraceIndex, call: Call) -> Kind | None:
    """Returns why a result has no history; None if the call is there to remove it, as `detach()` is.

    A gradient that is a single number counts as meant: a step against it is written as a sum too.
    """
    if call.mode != "grad":
        return "recording off"
    made = [facts.tensor(access.tensor) for access in call.outputs]
    if call.op == "autograd.grad":
        event = facts.event(call.index - 1)
        several = any(size != 1 for tensor in made for size in tensor.shape)
        return "gradient" if several and isinstance(event, Backward) and not event.create_graph else None
    return "dtype" if made and not any(map(may_require_grad, made)) else None
