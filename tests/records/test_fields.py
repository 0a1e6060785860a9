"""The fields that refer to tables say so in their type hints, from which the invariants are derived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest
import torch

import tensorlens
from tensorlens.records import observations
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.fields import bounds_of, references_of
from tensorlens.records.invariants import validate
from tensorlens.records.model import Backward, Call, Span, State, Total, Trace

NAMES = {
    "site": "sites", "sites": "sites", "caller": "sites", "stack": "sites", "opened": "sites",
    "tensor": "tensors", "tensors": "tensors", "base": "tensors", "leaf": "tensors",
    "storage": "storages", "overwrite": "overwrites", "failure": "failures",
}  # fmt: skip


def records(hint: Any) -> Iterator[type]:
    """All records in a type hint, and in the fields of those."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
        for inner in get_type_hints(hint).values():
            yield from records(inner)
    for argument in get_args(hint):
        yield from records(argument)


ALL = sorted(set(records(Trace)), key=lambda record: record.__name__)


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.__name__)
def test_a_field_with_the_name_of_a_table_refers_to_it(record: type) -> None:
    if record is Trace:
        return
    named = {field.name: NAMES[field.name] for field in fields(record) if field.name in NAMES}
    assert named.items() <= references_of(record).items()


def test_references_and_bounds_come_from_the_hints() -> None:
    assert references_of(State) == {"tensor": "tensors", "storage": "storages"}
    assert references_of(Backward) == {"site": "sites", "inputs": "tensors"}
    assert references_of(observations.Step) == {
        "site": "sites", "parameters": "tensors", "gradients": "tensors", "carried": "tensors"
    }  # fmt: skip
    assert references_of(SavedTensor) == {"tensor": "tensors", "storage": "storages"}
    assert bounds_of(Span) == {"line": 1, "column": 0, "end_line": 1, "end_column": 0}
    assert bounds_of(Total) == {"count": 1}


@pytest.fixture(scope="module")
def trace() -> Trace:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with tensorlens.trace() as lens:
        (weight * 2).sum().backward()
        optimizer.step()
    assert validate(lens.trace()) == []
    return lens.trace()


def test_a_reference_to_nothing_is_found(trace: Trace) -> None:
    call = next(event for event in trace.events if isinstance(event, Call))
    (step,) = trace.inspection.steps
    wrong = [
        replace(trace, events=(replace(call, site=999), *trace.events[1:])),
        replace(trace, events=(replace(call, outputs=(replace(call.outputs[0], tensor=-1),)), *trace.events[1:])),
        replace(trace, inspection=replace(trace.inspection, steps=(replace(step, gradients=(999,)),))),
        replace(trace, totals=(replace(trace.totals[0], count=0),)),
    ]
    assert [validate(damaged) for damaged in wrong] == [
        ["Call.site is unknown site 999"],
        ["Access.tensor is unknown tensor -1"],
        ["Step.gradients is unknown tensor 999"],
        ["Total.count is 0"],
    ]


def test_a_nan_beside_a_number_is_not_compared() -> None:
    """A set has its items in the order of their hashes, and the hash of a NaN is its address."""
    with tensorlens.trace(training=True) as lens:
        torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    recorded = lens.trace()
    (group,) = recorded.inspection.groups
    for count in (7, -(2**65)):
        first, last, later = (float("nan") for _ in range(3))
        broken = replace(group, grown=(count, first, last, later))
        found = validate(replace(recorded, inspection=replace(recorded.inspection, groups=(broken,))))
        assert found == ([] if count == 7 else [f"OptimizerGroup.grown is {count}"])
