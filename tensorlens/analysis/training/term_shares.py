"""Computes which share of a module's gradient each term of a loss gives, from what a second run measured.

A share is the L2 norm of the gradient of one term alone, divided by the sum of these norms over all terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

from tensorlens.analysis.trace_index import TraceIndex, index_of
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.summed_terms import Loss, LossTerm, losses, terms_of
from tensorlens.journal.child_config import LossTerms
from tensorlens.records.model import Backward, Trace
from tensorlens.records.training import TermGradient

Owner = tuple[str, ...]
MOST_PARTS = 4  # of a model that is divided


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A pass whose terms are measured: the nodes of the root and of each term, by the place of the term in the loss."""

    root: int
    nodes: Mapping[int, tuple[int, ...]]


def terms_to_measure(trace: Trace) -> tuple[LossTerms, ...]:
    """Returns the terms that a second run measures: at the first, the middle and the last pass of each loss."""
    facts = index_of(trace)
    chosen = (each for loss in losses(facts) for each in _chosen(facts, loss))
    return tuple(LossTerms(each.root, tuple(each.nodes.values())) for each in chosen)


def shares(training: MeasuredTraining, loss: Loss) -> dict[int, dict[Owner, tuple[float, ...]]]:
    """Maps the places of the terms of a loss to the modules that they reach, each with the shares of its gradient at
    the measured passes, in order. A module that one term alone reaches has the share 1."""
    facts, found = training.facts, dict[int, dict[Owner, list[float]]]()
    gradients = {(each.root, each.node): each for each in facts.trace.inspection.term_gradients}
    owners = owners_in(training, loss)
    for chosen in _chosen(facts, loss) if gradients else ():
        own = {place: gradients.get((chosen.root, nodes[0])) for place, nodes in chosen.nodes.items()}
        norms = {place: _norms(each, owners) for place, each in own.items() if each is not None}
        for place, each in norms.items():
            reached = {owners[number] for number in loss.terms[place].reached if number in owners}
            for owner, norm in each.items():
                total = sum(other.get(owner, 0.0) for other in norms.values())
                if total and owner in reached:
                    found.setdefault(place, {}).setdefault(owner, []).append(norm / total)
    return {place: {owner: tuple(values) for owner, values in each.items()} for place, each in found.items()}


def cancelling_terms(training: MeasuredTraining, tensor: int) -> tuple[Loss, tuple[LossTerm, ...]] | None:
    """Finds a loss with terms that each give a parameter a gradient with values other than zero, in each measured pass.

    If the whole gradient is zero, these cancel.
    """
    gradients = {(each.root, each.node): each for each in training.facts.trace.inspection.term_gradients}
    for loss in losses(training.facts) if gradients else ():
        places: list[set[int]] = []
        for chosen in _chosen(training.facts, loss):
            own = {place: gradients.get((chosen.root, nodes[0])) for place, nodes in chosen.nodes.items()}
            if any(own.values()):
                places.append({place for place, each in own.items() if each is not None and _norm_of(each, tensor)})
        if places and len(places[0]) > 1 and all(each == places[0] for each in places):
            return loss, tuple(loss.terms[place] for place in sorted(places[0]))
    return None


def _norm_of(gradient: TermGradient, tensor: int) -> float:
    return dict(zip(gradient.tensors, gradient.norms, strict=True)).get(tensor, 0.0)


def owners_in(training: MeasuredTraining, loss: Loss) -> dict[int, Owner]:
    """Maps parameters to the modules that the terms of a loss are described by.

    A model is divided into its modules if a term reaches only some of these, and each of them as a whole.
    """
    owners = {row.tensor: row.owner[:1] for row in training.rows}
    for whole in set(owners.values()):
        parts: dict[Owner, set[int]] = defaultdict(set)
        for row in training.rows:
            if row.owner[:1] == whole:
                parts[row.owner[:2]].add(row.tensor)
        reached = [[part & term.reached for part in parts.values()] for term in loss.terms]
        divides = any(any(term) and not all(term) for term in reached)
        are_whole = all(
            each in (set(), part) for term in reached for each, part in zip(term, parts.values(), strict=True)
        )
        if divides and are_whole and 1 < len(parts) <= MOST_PARTS:
            owners |= {tensor: part for part, tensors in parts.items() for tensor in tensors}
    return owners


def _norms(gradient: TermGradient, owners: Mapping[int, Owner]) -> dict[Owner, float]:
    """Returns the L2 norm of the gradients of each module's parameters together."""
    by_owner: dict[Owner, list[float]] = defaultdict(list)
    for tensor, norm in sorted(zip(gradient.tensors, gradient.norms, strict=True)):
        if tensor in owners:
            by_owner[owners[tensor]].append(norm)
    return {owner: hypot(*norms) for owner, norms in by_owner.items()}


def _chosen(facts: TraceIndex, loss: Loss) -> list[_Chosen]:
    if sum(bool(term.reached) for term in loss.terms) < 2:
        return []
    last = len(loss.backwards) - 1
    passes = (loss.backwards[place] for place in sorted({0, last // 2, last}))
    return [each for backward in passes if (each := _nodes(facts, loss, backward)) is not None]


def _nodes(facts: TraceIndex, loss: Loss, backward: Backward) -> _Chosen | None:
    """Returns the nodes of the terms of a pass; None if one of them is not known."""
    places = {term.span: place for place, term in enumerate(loss.terms)}
    nodes: dict[int, list[int]] = defaultdict(list)
    root = _node(facts, backward.roots[0].tensor, backward.index) if len(backward.roots) == 1 else None
    for span, term in terms_of(facts, backward):
        node = _node(facts, term.tensor, term.added.index) if term.requires_grad else None
        if term.requires_grad and (node is None or span not in places):
            return None
        if node is not None:
            nodes[places[span]].append(node)
    if root is None or len(nodes) < 2:
        return None
    return _Chosen(root, {place: tuple(each) for place, each in sorted(nodes.items())})


def _node(facts: TraceIndex, number: int, before: int) -> int | None:
    """Returns the sequence number of the node that a tensor has; None if no recorded call made it."""
    call = next(iter(facts.producers(number, before)), None)
    return None if call is None or call.nodes[1] <= call.nodes[0] else call.nodes[1] - 1
