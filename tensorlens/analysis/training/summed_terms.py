"""Finds the terms of each loss: the numbers that the root of a backward pass is the sum of.

A sum of single numbers is a sum of terms, and so is one of values for each sample that all have a history. Products
with constants, means and reshaping are followed. Terms that one expression computes, as in a loop, count as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.analysis.shared_leaves import SharedLeaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import LINEAR, MAX_PASSES, SUMS, is_number, op_name
from tensorlens.analysis.training.run_summary import outer
from tensorlens.records.model import Backward, Call, Span

_GRAD = "autograd.grad"
_MOST_NAMES = 3  # of terms that one expression computed


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
    """The terms of one loss that one expression computed, in all examined passes."""

    site: int | None
    terms: tuple[Term, ...]
    span: Span | None  # of the expression

    @property
    def reached(self) -> frozenset[int]:
        return frozenset[int]().union(*{term.reached for term in self.terms})

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
    backwards: tuple[Backward, ...] = ()  # that are recorded


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


def names_of(facts: TraceIndex, term: LossTerm) -> str:
    """Returns the names that the terms of one expression have in the last examined pass, as "fit_a, fit_b".

    A line of a function computes terms that its callers give different names. Of more than three names, one and the
    count of the others are returned. If the last has no name, the text of the expression stands for all.
    """
    last = term.terms[-1]
    text = term_name(facts, last)
    if "(" in text:
        return text
    same = (each for each in term.terms if each.backward is last.backward)
    names = list(dict.fromkeys(term_name(facts, each) for each in same))
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{names[0]} and {len(names) - 1} others"


def reached_by(backward: Backward) -> frozenset[int]:
    """Returns the tensors that a pass gave a gradient."""
    filled = (change.tensor for change in backward.gradients if change.after is not None)
    return frozenset(backward.inputs if backward.op == _GRAD else filled)


def _asks_for_parameters(facts: TraceIndex, backward: Backward) -> bool:
    return any(facts.tensor(number).type.endswith("Parameter") for number in backward.inputs)


def _loss(facts: TraceIndex, site: int, passes: Sequence[Backward]) -> Loss:
    terms: dict[Span | None, list[Term]] = defaultdict(list)
    for backward in passes[-MAX_PASSES:]:
        for span, term in terms_of(facts, backward):
            terms[span].append(term)
    found = tuple(
        LossTerm(_site(facts, each[0].tensor, each[0].added.index), tuple(each), span) for span, each in terms.items()
    )
    return Loss(site, _count(facts, site, passes), frozenset[int]().union(*map(reached_by, passes)),
                found if len(found) > 1 else (), tuple(passes))  # fmt: skip


def _count(facts: TraceIndex, site: int, passes: Sequence[Backward]) -> int:
    """Counts the passes of a line. A long run has folded some, which only the totals count."""
    ops = {backward.op for backward in passes}
    total = sum(each.count for each in facts.trace.totals if each.site == site and each.op in ops)
    failed = sum(each.site == site and each.op in ops for each in facts.trace.failures)
    return max(len(passes), total - failed)


def terms_of(facts: TraceIndex, backward: Backward) -> Iterable[tuple[Span | None, Term]]:
    """Returns the terms of a pass, each with the expression that computed it; nothing if not all of them are known."""
    if len(backward.roots) != 1:
        return []
    summands = _summands(facts, backward.roots[0].tensor, backward.index)
    reached, found = reached_by(backward), []
    leaves = SharedLeaves(facts, reached)
    for span, pairs in summands.items():
        for number, added in pairs:
            requires_grad = facts.requires_grad(number, added.index - 1)
            found.append((span, Term(number, backward, added, requires_grad, leaves.of(number, added.index))))
    return found if reached <= frozenset[int]().union(*{term.reached for _, term in found}) else []


# --- sums ------------------------------------------------------------------------------------------------------------

_Summands = dict[Span | None, list[tuple[int, Call]]]
"""The terms of a sum by the expression that computed them, each with the call that added it."""
_Part = tuple[int, int, Call | None]
"""(the tensor that is shown as a term, the one that was computed first, the sum that it is)"""


def _summands(facts: TraceIndex, root: int, before: int) -> _Summands:
    """Returns the terms of a root; nothing if it is no sum.

    A sum of terms of its own line counts as one term if one expression computed them all, or if the sum has a name that
    is not that of the root.
    """
    top, *_ = _next_sum(facts, root, before)
    if top is None:
        return {}
    parts: dict[int, tuple[Call, list[_Part]]] = {}
    waiting = [top]
    while waiting and len(parts) < MAX_CALLS:
        call = waiting.pop()
        if call.index in parts:
            continue
        terms: list[_Part] = []
        for number in dict.fromkeys(access.tensor for access in call.inputs):
            below, shown, computed = _next_sum(facts, number, call.index)
            terms.append((shown, computed, below))
            waiting += [] if below is None else [below]
        parts[call.index] = call, terms
    if waiting:
        return {}
    summaries: dict[int, _Summands] = {}
    for index in sorted(parts):  # a sum comes after those that it adds
        call, terms = parts[index]
        summaries[index] = _summary(facts, call, terms, (summaries, facts.name(root, before)))
    return summaries[top.index]


def _summary(
    facts: TraceIndex,
    call: Call,
    terms: list[_Part],
    known: tuple[dict[int, _Summands], str],
) -> _Summands:
    """Returns the terms of one sum. `known` are those of the sums below it, and the name of the root."""
    summaries, root = known
    summary: _Summands = defaultdict(list)
    for number, computed, below in terms:
        if below is None:
            summary[facts.span(_site(facts, computed, call.index))].append((number, call))
            continue
        inner, own = summaries[below.index], facts.span(below.site)
        is_one_line = own is not None and all(
            s is not None and s.line == own.line and s.file == own.file for s in inner
        )
        if is_one_line and len(inner) == 1:
            summary[next(iter(inner))].append((number, call))
        elif is_one_line and facts.names.is_named(number) and facts.name(number, call.index) != root:
            summary[own].append((number, call))
        else:
            for span, pairs in inner.items():
                summary[span] += pairs
    return summary


def _next_sum(facts: TraceIndex, number: int, before: int) -> tuple[Call | None, int, int]:
    """Follows products with constants, means and reshaping back to a sum.

    Returns it, if there is one, and the last tensor of the same shape before it, twice: the last that has a name, if
    any has one, and the last of all.
    """
    shown = computed = number
    for _ in range(MAX_CALLS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not facts.requires_grad(number, before - 1) or op_name(call) not in (*SUMS, *LINEAR):
            break
        inputs = list(dict.fromkeys(access.tensor for access in call.inputs))
        history = [each for each in inputs if facts.requires_grad(each, call.index - 1)]
        if op_name(call) in SUMS and len(inputs) > 1:
            return call if _adds_terms(facts, inputs, history) else None, shown, computed
        if len(history) != 1:
            break
        number, before = history[0], call.index
        named = facts.names.is_named
        if facts.tensor(number).shape == facts.tensor(shown).shape:
            shown, computed = number if named(number) or not named(shown) else shown, number
    return None, shown, computed


def _adds_terms(facts: TraceIndex, inputs: list[int], history: list[int]) -> bool:
    """Returns whether a sum adds single numbers, or one value for each sample, all with a history."""
    if all(is_number(facts, number) for number in inputs):
        return True
    shapes = {facts.tensor(number).shape for number in inputs}
    return len(history) == len(inputs) and len(shapes) == 1 and len(next(iter(shapes))) == 1


def _site(facts: TraceIndex, number: int, before: int) -> int | None:
    made = next(iter(facts.producers(number, before)), None) or facts.creator(number)
    return None if made is None else made.site
