"""Finds the two errors between values and the nearest entries of a table, each of which trains one of the two sides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.losses.summand_weights import Summand, factor_names, reduced_error
from tensorlens.analysis.training.picked_entries import is_picked_by
from tensorlens.records.model import Call

_CUTS = frozenset(("Tensor.detach", "torch.detach", "Tensor.data.__get__"))
_OF_TABLE = re.compile(r"code|book|embed|dict|table", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CodeTerms:
    """Two such errors: a number below 1 multiplies the one that trains the table, and none the other."""

    codes: Call
    values: Call
    scaled: Call
    share: float


@dataclass(frozen=True, slots=True)
class _Error:
    call: Call
    trained: int
    constant: int  # what was detached
    weight: float
    summand: Summand


def scaled_code_terms(facts: TraceIndex, found: list[Summand]) -> Iterator[CodeTerms]:
    errors = [error for each in found if (error := _error(facts, each)) is not None]
    for codes in errors:
        for values in errors:
            if (codes.trained, codes.constant) != (values.constant, values.trained):
                continue
            own = [call for call in codes.summand.factors if call not in values.summand.factors]
            others = [call for call in values.summand.factors if call not in codes.summand.factors]
            if others or len(own) != 1 or codes.summand.unknown != values.summand.unknown:
                continue
            share, names = codes.weight / values.weight, factor_names(facts, own[0])
            is_meant = any(_OF_TABLE.search(name) for name in names)
            if 0 < share < 1 and not is_meant and is_picked_by(facts, codes.trained, codes.constant, codes.call.index):
                yield CodeTerms(codes.call, values.call, own[0], share)


def _error(facts: TraceIndex, each: Summand) -> _Error | None:
    """Returns the error of a value that has a gradient from one that is detached."""
    error = reduced_error(facts, each)
    if error is None or not error[1]:
        return None
    call, weight, _ = error
    made: Call | None = call
    if len({access.tensor for access in call.inputs}) == 1:
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
    if made is None or len(made.inputs) != 2 or (made is not call and op_name(made) != "sub"):
        return None
    numbers = [access.tensor for access in made.inputs]
    cut = [_uncut(facts, number, made.index) for number in numbers]
    if (cut[0] is None) == (cut[1] is None):
        return None
    trained, constant = (numbers[1], cut[0]) if cut[1] is None else (numbers[0], cut[1])
    return None if constant is None else _Error(call, trained, constant, weight, each)


def _uncut(facts: TraceIndex, number: int, before: int) -> int | None:
    made = next(iter(facts.producers(number, before)), None)
    return made.inputs[0].tensor if made is not None and made.op in _CUTS and made.inputs else None
