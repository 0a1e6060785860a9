"""Finds the two errors between values and the nearest entries of a table, each of which trains one of the two sides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import ERRORS
from tensorlens.analysis.training.picked_entries import is_picked_by
from tensorlens.analysis.training.summand_weights import Summand, factor_names, number_name, reduced_error
from tensorlens.analysis.training.value_ranges import SAME_VALUES
from tensorlens.records.model import Call

_OF_TABLE = re.compile(r"code|book|embed|dict|table", re.IGNORECASE)
_OF_VALUES = re.compile(r"commit|beta", re.IGNORECASE)
_USUAL = 0.25  # the weight of a commitment
_COPIES = SAME_VALUES | {"detach", "clone", "requires_grad", "flatten", "unflatten", "movedim", "t", "swapaxes"}
_DISTANCES = ERRORS | {"pairwise_distance", "cosine_similarity", "dist"}
_CURVES = frozenset("square pow float_power abs norm vector_norm sqrt".split())
_REDUCTIONS = frozenset(("sum", "mean"))
_MOST_CALLS, _MOST_LATER = 8, 200


@dataclass(frozen=True, slots=True)
class CodeTerms:
    """Two such errors: a number below 1 multiplies the one that trains the table, and none the other.

    `share` is 0 where the number is not known, but named as the weight of a commitment.
    """

    codes: Call
    values: Call
    scaled: Call
    share: float


@dataclass(frozen=True, slots=True)
class _Error:
    call: Call
    trained: int
    constant: int  # what was detached
    ops: tuple[str, ...]  # of the way from the loss to the two
    summand: Summand


def scaled_code_terms(facts: TraceIndex, found: list[Summand]) -> Iterator[CodeTerms]:
    errors = [error for each in found if (error := _error(facts, each)) is not None]
    for codes in errors:
        for values in errors:
            if (codes.trained, codes.constant) != (values.constant, values.trained):
                continue
            own = [call for call in codes.summand.factors if call not in values.summand.factors]
            others = [call for call in values.summand.factors if call not in codes.summand.factors]
            if others or len(own) != 1:
                continue
            share = _share(facts, codes, values, own[0])
            is_picked = share is not None and is_picked_by(facts, codes.trained, codes.constant, codes.call.index)
            if share is not None and is_picked and _is_read(facts, codes, values):
                yield CodeTerms(codes.call, values.call, own[0], share)


def _is_read(facts: TraceIndex, codes: _Error, values: _Error) -> bool:
    """Returns whether something else than the two errors reads the codes: centres of clusters are in these alone."""
    made = facts.creator(codes.trained)
    since = made.index if made is not None else 0
    own = {call.index for error in (codes, values) for call in (error.call, *_above(facts, error.call, since))}
    known, until = {codes.trained}, max(own) + _MOST_LATER
    for call in facts.calls_between(since + 1, until):
        if not any(access.tensor in known for access in call.inputs):
            continue
        if op_name(call) in _COPIES or call.op.endswith(".data.__get__"):
            known |= {access.tensor for access in call.outputs}
        elif call.index not in own:
            return True
    return False


def _above(facts: TraceIndex, call: Call, since: int) -> Iterator[Call]:
    for access in call.inputs:
        for _, made in ancestry(facts, access.tensor, call.index, _MOST_LATER, since):
            yield made


def _share(facts: TraceIndex, codes: _Error, values: _Error, factor: Call) -> float | None:
    """Returns the number that is meant for the other error; 0 if only its name says so; None if neither does."""
    is_named, is_other = _is_named(facts, factor)
    if codes.summand.unknown != values.summand.unknown:
        further = [each for each in codes.summand.unknown if each not in values.summand.unknown]
        is_only = further == [factor.index] and len(further) + len(values.summand.unknown) == len(codes.summand.unknown)
        return 0.0 if is_only and is_named and not is_other and len(factor.inputs) == 1 else None
    exact = [reduced_error(facts, each.summand) for each in (codes, values)]
    if exact[0] is not None and exact[1] is not None:
        share = exact[0][1] / exact[1][1]
    elif _reduction(facts, codes) == _reduction(facts, values):
        share = codes.summand.weight / values.summand.weight
    else:
        return None
    is_usual = is_named or (isclose(share, _USUAL) and not _OF_TABLE.search(number_name(facts, factor)))
    is_meant = is_other and not is_usual
    return share if 0 < share < 1 and not is_meant else None


def _is_named(facts: TraceIndex, factor: Call) -> tuple[bool, bool]:
    """Returns whether a name in a product speaks of the values, and whether one speaks of the table."""
    names = factor_names(facts, factor)
    return tuple(any(words.search(name) for name in names) for words in (_OF_VALUES, _OF_TABLE))  # type: ignore[return-value]


def _reduction(facts: TraceIndex, error: _Error) -> tuple[object, ...]:
    """Returns how an error is computed and reduced, as far as the calls and the source show it."""
    node = facts.node_at(error.call.site)
    written = (ast.unparse(node.func), *map(ast.unparse, node.keywords)) if isinstance(node, ast.Call) else ()
    shapes = [facts.tensor(each).shape for each in (error.summand.tensor, error.trained)]
    return *shapes, *error.ops, *(written if error.call.op.rpartition(".")[2] in _DISTANCES else ())


def _error(facts: TraceIndex, each: Summand) -> _Error | None:
    """Returns the error of a value that has a gradient from one that is detached."""
    if each.made is None or op_name(each.made) in _REDUCTIONS:
        return None
    call, ops, made = each.made, list[str](), each.made
    for _ in range(_MOST_CALLS):
        ops.append(op_name(made))
        numbers = list(dict.fromkeys(access.tensor for access in made.inputs))
        if len(numbers) == 2 and (op_name(made) in _DISTANCES or (op_name(made) == "sub" and len(ops) > 1)):
            return _of_two(facts, made, numbers, (call, tuple(ops), each))
        is_square = op_name(made) == "mul" and len(made.inputs) == 2
        below = next(iter(facts.producers(numbers[0], made.index)), None) if len(numbers) == 1 else None
        if below is None or not (is_square or op_name(made) in _CURVES | (_REDUCTIONS if len(ops) > 1 else set())):
            return None
        made = below
    return None


def _of_two(
    facts: TraceIndex, made: Call, numbers: list[int], shown: tuple[Call, tuple[str, ...], Summand]
) -> _Error | None:
    has_graph = [facts.requires_grad(number, made.index - 1) for number in numbers]
    if has_graph[0] == has_graph[1]:
        return None
    trained, constant = (_source(facts, numbers[has_graph.index(which)], made.index) for which in (True, False))
    call, ops, summand = shown
    is_cut = facts.requires_grad(constant, made.index - 1)
    return _Error(call, trained, constant, ops, summand) if is_cut else None


def _source(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that a tensor has the values of, in another shape or without the graph."""
    for _ in range(_MOST_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        is_copy = made is not None and (op_name(made) in _COPIES or made.op.endswith(".data.__get__"))
        if made is None or not is_copy or len(made.inputs) != 1:
            break
        number, before = made.inputs[0].tensor, made.index
    return number
