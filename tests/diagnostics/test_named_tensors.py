"""Tests the search for the tensors that a finding names: those of the table below it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.silent import Run, run  # noqa: F401

from tensorlens.diagnostics import diagnose
from tensorlens.diagnostics.shared.named_tensors import named_tensors
from tensorlens.records.model import Call, Trace

OVERWRITTEN = """
import torch
a = torch.ones(2, requires_grad=True)
other = torch.zeros(2)
out = a.sigmoid()
c = out.detach()
c.zero_()
out.sum().backward()
"""


def made(trace: Trace, op: str) -> list[int]:
    calls = [event for event in trace.events if isinstance(event, Call) and event.op == op]
    return [call.outputs[0].tensor for call in calls]


@pytest.mark.parametrize(
    ("title", "ops"),
    [
        ("`c.zero_()` overwrote `out`", ["Tensor.detach", "Tensor.sigmoid"]),
        ("`out -= ...` is one of `torch.optim.SGD`", ["Tensor.sigmoid"]),
        ("a tensor of shape [2] and `1, 2 (` are no names", []),
        ("`a.sigmoid()` of `other[0]`", ["torch.ones", "torch.zeros"]),
    ],
)
def test_names_and_code_in_the_title_are_found(run: Run, title: str, ops: list[str]) -> None:  # noqa: F811
    _, trace = run(OVERWRITTEN)
    (found,) = diagnose(trace)
    changed = replace(found, title=title, labels=(), explanation="")
    assert named_tensors(changed, trace) == {tensor for op in ops for tensor in made(trace, op)}


def test_a_real_finding_names_what_was_overwritten(run: Run) -> None:  # noqa: F811
    _, trace = run(OVERWRITTEN)
    (found,) = diagnose(trace)
    assert made(trace, "Tensor.sigmoid")[0] in named_tensors(found, trace)
    assert not {*made(trace, "torch.zeros")} & named_tensors(found, trace)


def test_a_name_of_several_tensors_means_the_one_that_a_labelled_line_used(run: Run) -> None:  # noqa: F811
    _, trace = run(
        """
        import torch
        x = torch.ones(2, requires_grad=True)
        x.data.zero_()
        x = torch.ones(2, requires_grad=True)
        x.zero_()
        """
    )
    (found,) = diagnose(trace)
    first, second = made(trace, "torch.ones")
    assert named_tensors(found, trace) == {second}
    assert first != second
