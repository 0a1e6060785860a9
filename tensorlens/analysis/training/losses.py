"""Finds the terms of each loss: the numbers that the root of a backward pass is the sum of.

A sum of single numbers is a sum of terms, and so is one of values for each sample that all have a history. Products
with constants, means and reshaping are followed. Terms that one line computes count as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorlens.analysis.lineage import MAX_CALLS, graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, MAX_PASSES, SUMS, is_number, op_name
from tensorlens.analysis.training.run_summary import outer
from tensorlens.records.model import Backward, Call

_Line = tuple[str, int]  # file, line
_GRAD = "autograd.grad"


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor that a call adds to others on the way to the root of a pass."""

    tensor: int
    backward: Backward
    added: Call  # the sum
    requires_grad: bool
    reached: frozenset[int]  # leaves that this pass gave a gradient and that the graph of the term leads to


@dataclass(frozen=True, slots=True)
class LossTerm:
    """The terms of one loss that one line computed, in all examined passes."""

    site: int | None
    terms: tuple[Term, ...]

    @property
    def reached(self) -> frozenset[int]:
        return frozenset[int]().union(*(term.reached for term in self.terms))

    @property
    def requires_grad(self) -> bool:
        return any(term.requires_grad for term in self.terms)


@dataclass(frozen=True, slots=True)
class Loss:
    """A line that runs backward passes. Only the last few passes are examined for terms."""

    site: int
    passes: int  # that ended without an error
    reached: frozenset[int]  # leaves that got a gradient
    terms: tuple[LossTerm, ...]  # none if there is only one, or if not all of the graph is recorded


@lru_cache(maxsize=1)
def losses(facts: TraceIndex) -> tuple[Loss, ...]:
    """Returns the lines that ran backward passes, in their order.

    A line that asks `autograd.grad` for the gradients of tensors other than parameters is none of them.
    """
    by_site: dict[int, list[Backward]] = defaultdict(list)
    for backward in outer(facts.backwards)[::-1]:
        if not backward.failed and (backward.op != _GRAD or _asks_for_parameters(facts, backward)):
            by_site[backward.site].append(backward)
    return tuple(_loss(facts, site, passes) for site, passes in by_site.items())


def term_name(facts: TraceIndex, term: Term) -> str:
    """Returns the name of a term where it is added; its first name if that is the name of the loss."""
    name = facts.name(term.tensor, term.added.index)
    stored = facts.names.stores.get(term.tensor)
    if not stored or name != facts.name(term.backward.roots[0].tensor, term.backward.index):
        return name
    return stored[min(stored)]


def reached_by(backward: Backward) -> frozenset[int]:
    """Returns the tensors that a pass gave a gradient."""
    filled = (change.tensor for change in backward.gradients if change.after is not None)
    return frozenset(backward.inputs if backward.op == _GRAD else filled)


def _asks_for_parameters(facts: TraceIndex, backward: Backward) -> bool:
    return any(facts.tensor(number).type.endswith("Parameter") for number in backward.inputs)


def _loss(facts: TraceIndex, site: int, passes: Sequence[Backward]) -> Loss:
    terms: dict[_Line | None, list[Term]] = defaultdict(list)
    for backward in passes[-MAX_PASSES:]:
        for line, term in _terms_of(facts, backward):
            terms[line].append(term)
    found = tuple(LossTerm(_site(facts, each[0].tensor, each[0].added.index), tuple(each)) for each in terms.values())
    return Loss(site, _count(facts, site, passes), frozenset[int]().union(*map(reached_by, passes)),
                found if len(found) > 1 else ())  # fmt: skip


def _count(facts: TraceIndex, site: int, passes: Sequence[Backward]) -> int:
    """Counts the passes of a line. A long run has folded some, which only the totals count."""
    ops = {backward.op for backward in passes}
    total = sum(each.count for each in facts.trace.totals if each.site == site and each.op in ops)
    failed = sum(each.site == site and each.op in ops for each in facts.trace.failures)
    return max(len(passes), total - failed)


def _terms_of(facts: TraceIndex, backward: Backward) -> Iterable[tuple[_Line | None, Term]]:
    """Returns the terms of a pass, each with the line that computed it; nothing if not all of them are known."""
    if len(backward.roots) != 1:
        return []
    summands = _summands(facts, backward.roots[0].tensor, backward.index)
    reached, found = reached_by(backward), []
    for line, pairs in summands.items():
        for number, added in pairs:
            leaves = frozenset(graph_leaves(facts, number, added.index))
            requires_grad = facts.requires_grad(number, added.index - 1)
            found.append((line, Term(number, backward, added, requires_grad, leaves & reached)))
    return found if reached <= frozenset[int]().union(*(term.reached for _, term in found)) else []


# --- sums ------------------------------------------------------------------------------------------------------------

_Summands = dict[_Line | None, list[tuple[int, Call]]]
"""The terms of a sum by the line that computed them, each with the call that added it."""


def _summands(facts: TraceIndex, root: int, before: int) -> _Summands:
    """Returns the terms of a root; nothing if it is no sum. A sum of terms of its own line counts as one term."""
    top, _ = _next_sum(facts, root, before)
    if top is None:
        return {}
    parts: dict[int, tuple[Call, list[tuple[int, Call | None]]]] = {}  # sum -> its terms, and the sums that they are
    waiting = [top]
    while waiting and len(parts) < MAX_CALLS:
        call = waiting.pop()
        if call.index in parts:
            continue
        terms: list[tuple[int, Call | None]] = []
        for number in dict.fromkeys(access.tensor for access in call.inputs):
            below, shown = _next_sum(facts, number, call.index)
            terms.append((shown, below))
            waiting += [] if below is None else [below]
        parts[call.index] = call, terms
    if waiting:
        return {}
    summaries: dict[int, _Summands] = {}
    for index in sorted(parts):  # a sum comes after those that it adds
        call, terms = parts[index]
        summaries[index] = _summary(facts, call, terms, summaries)
    return summaries[top.index]


def _summary(
    facts: TraceIndex, call: Call, terms: list[tuple[int, Call | None]], summaries: dict[int, _Summands]
) -> _Summands:
    summary: _Summands = defaultdict(list)
    for number, below in terms:
        inner = {} if below is None else summaries[below.index]
        line = _line(facts, number, call.index) if below is None else _line_of(facts, below.site)
        if below is None or (len(inner) == 1 and line in inner):
            summary[line].append((number, call))
            continue
        for each, pairs in inner.items():
            summary[each] += pairs
    return summary


def _next_sum(facts: TraceIndex, number: int, before: int) -> tuple[Call | None, int]:
    """Follows products with constants, means and reshaping back to a sum. Returns it, if there is one, and the last
    single number, or tensor of the same shape, before it: the last that has a name, if any has one."""
    shown = number
    for _ in range(MAX_CALLS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not facts.requires_grad(number, before - 1):
            break
        inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
        history = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        if op_name(call) in SUMS and len(inputs) > 1:
            return (call, shown) if _adds_terms(facts, inputs, history) else (None, shown)
        if op_name(call) not in (*SUMS, *LINEAR) or len(history) != 1:
            break
        number, before = history[0], call.index
        named = facts.names.is_named
        is_like = is_number(facts, number) or facts.tensor(number).shape == facts.tensor(shown).shape
        if is_like and (named(number) or not named(shown)):
            shown = number
    return None, shown


def _adds_terms(facts: TraceIndex, inputs: list[int], history: list[int]) -> bool:
    """Returns whether a sum adds single numbers, or one value for each sample, all with a history."""
    if all(is_number(facts, number) for number in inputs):
        return True
    shapes = {facts.tensor(number).shape for number in inputs}
    return len(history) == len(inputs) and len(shapes) == 1 and len(next(iter(shapes))) == 1


def _site(facts: TraceIndex, number: int, before: int) -> int | None:
    made = next(iter(facts.producers(number, before)), None) or facts.creator(number)
    return None if made is None else made.site


def _line(facts: TraceIndex, number: int, before: int) -> _Line | None:
    return _line_of(facts, _site(facts, number, before))


def _line_of(facts: TraceIndex, site: int | None) -> _Line | None:
    span = facts.span(site)
    return None if span is None else (span.file, span.line)
