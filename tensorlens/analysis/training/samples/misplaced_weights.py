"""Finds weights of a sampler, one for each class of labels, that belong to other samples than those that it draws.

The samples that are drawn by the weight of a class then have all labels, about as often as the whole data set has them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import sqrt

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call
from tensorlens.records.training_samples import SampledLabels

_MIN_DRAWN, _MIN_OF_WEIGHT = 150, 30
_MOST_ALIKE, _NEAR = 0.25, 0.08
_MOST_ABOVE, _PART, _WINDOW = 200, 0.95, 0.85
_TAKING = frozenset("getitem index_select long to clone view reshape flatten squeeze".split())
_LOADING = _TAKING | {"stack", "as_tensor", "tensor", "pin_memory"}
_LABELS = ("int64", "int32", "uint8")
_JOINING = frozenset("cat concat concatenate hstack stack".split())
_MAKING = "WeightedRandomSampler.__init__"


@dataclass(frozen=True, slots=True)
class MisplacedWeights:
    """Samples that a loader has drawn, and the call that gives the sampler its weights."""

    made: Call | None
    sampled: SampledLabels
    common: int  # the label that most samples have
    shares: tuple[float, ...]  # how many of the samples that each weight has drawn have it


def misplaced_weights(facts: TraceIndex) -> Iterator[MisplacedWeights]:
    """Yields these samplers, as they were last seen."""
    sampled = facts.trace.inspection.sampled_labels
    last = sampled[-1].number if sampled else 0
    for each in sampled:
        if each.number == last and _are_apart(each) and _are_of_labels(facts, each):
            table = _table(each)
            common = max(range(len(each.names)), key=lambda place: sum(row[place] for row in table))
            shares = tuple(row[common] / sum(row) for row in table)
            yield MisplacedWeights(_made(facts, each.weights), each, each.names[common], shares)


def _table(sampled: SampledLabels) -> list[tuple[int, ...]]:
    """Returns the drawn samples of each label, for each weight."""
    size = len(sampled.names)
    return [sampled.drawn[start : start + size] for start in range(0, len(sampled.drawn), size)]


def _are_apart(sampled: SampledLabels) -> bool:
    """Returns whether there is a weight for each label, for as many samples as have the label, while the samples that
    are drawn by a weight have the labels of all."""
    table, total = _table(sampled), sum(sampled.drawn)
    by_weight, by_label = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    if len(by_weight) != len(by_label) or len(by_label) < 2 or total < _MIN_DRAWN or min(by_weight) < _MIN_OF_WEIGHT:
        return False
    expected = [[one * other / total for other in by_label] for one in by_weight]
    pairs = zip((each for row in table for each in row), (each for row in expected for each in row), strict=True)
    distance = sum((found - mean) ** 2 / mean for found, mean in pairs if mean)
    weighted = sorted(count / sampled.samples for count in sampled.counts)
    labelled = sorted(count / total for count in by_label)
    is_alike = all(abs(one - other) < _NEAR for one, other in zip(weighted, labelled, strict=True))
    return is_alike and sqrt(distance / total / (len(by_label) - 1)) < _MOST_ALIKE


def _are_of_labels(facts: TraceIndex, sampled: SampledLabels) -> bool:
    """Returns whether the weights are those of some of the labels, `table[labels[rows]]`.

    All labels, or all but a few, may be those of another time than the samples, as the current ones of next ones. A
    table may have labels in one column and groups in another, as a tensor that is put together of both may.
    """
    ends = len(facts.events) and facts.events[-1].index
    known = _whole_sources(facts, sampled.labels, ends)
    for _, made in ancestry(facts, sampled.weights, ends, _MOST_ABOVE):
        if op_name(made) != "getitem" or len(made.inputs) != 2:
            continue
        numbers = list(_taken_from(facts, made.inputs[1].tensor))
        sizes = [(*facts.tensor(number).shape, 0)[0] for number in numbers]
        is_joined = any(_is_joined(facts, number) for number in numbers)
        if not is_joined and known & {*numbers} and sizes[0] == sampled.samples < _PART * max(sizes):
            return True
    return False


def _taken_from(facts: TraceIndex, number: int) -> Iterator[int]:
    """Yields whole numbers, and those that they are taken from."""
    while facts.tensor(number).dtype in _LABELS:
        yield number
        taken = facts.creator(number)
        if taken is None or op_name(taken) not in _TAKING or not taken.inputs or _is_window(facts, taken):
            break
        number = taken.inputs[0].tensor


def _is_window(facts: TraceIndex, taken: Call) -> bool:
    """Returns whether a call may take nearly all rows, as those of another time: `states[1:]` beside `states[:-1]`."""
    node = facts.node_at(taken.site)
    bounds = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(bounds, ast.Slice) or len(taken.inputs) != 1 or not taken.outputs:
        return False
    one, other = (facts.tensor(access.tensor).shape for access in (taken.inputs[0], taken.outputs[0]))
    is_moved = bounds.lower is not None or isinstance(bounds.upper, ast.UnaryOp | ast.BinOp)
    return is_moved and len(one) == len(other) and other[0] >= _WINDOW * one[0]


def _is_joined(facts: TraceIndex, number: int) -> bool:
    """Returns whether whole numbers may be of several kinds: columns, or one kind after another."""
    made = facts.creator(number)
    if made is None or len(facts.tensor(number).shape) > 1:
        return len(facts.tensor(number).shape) > 1
    shared = any(facts.tensor(access.tensor).storage == facts.tensor(number).storage for access in made.inputs)
    return op_name(made) in _JOINING or (shared and op_name(made) not in _TAKING)


def _whole_sources(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the whole numbers that labels are taken from, without the places that they are taken by."""
    found, waiting = set[int](), [(number, before)]
    for each, at in islice(waiting, _MOST_ABOVE):
        if each in found or facts.tensor(each).dtype not in _LABELS:
            continue
        found.add(each)
        for made in islice(facts.producers(each, at), 1):
            if op_name(made) in _LOADING and not _is_window(facts, made):
                read = made.inputs[:1] if op_name(made) in _TAKING else made.inputs
                waiting += [(access.tensor, made.index) for access in read]
    return found


def _made(facts: TraceIndex, weights: int) -> Call | None:
    """Returns the call that takes the weights of a sampler."""
    sites = facts.trace.sites
    taken = (call for call in facts.calls if op_name(call) == "as_tensor" and sites[call.site].through == _MAKING)
    own = (call for call in taken if any(access.tensor == weights for access in call.outputs))
    return next(own, facts.creator(weights))
