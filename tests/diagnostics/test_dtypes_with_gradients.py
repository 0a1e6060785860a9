"""A cut is found for every dtype that has gradients: float32, float64, bfloat16 and complex numbers."""

from __future__ import annotations

import pytest
from support.silent import Run, run  # noqa: F401

from tensorlens.diagnostics import diagnose

DTYPES = ["float32", "float64", "bfloat16", "complex64"]
PARTLY_CUT = """
import torch
w = torch.ones(2, dtype=torch.{dtype}, requires_grad=True)
loss = (w * 2 + (w * 3).detach()).abs().sum()
loss.backward()
"""
LEFT_TORCH = """
import torch
w = torch.ones((), dtype=torch.{dtype}, requires_grad=True)
loss = torch.tensor(abs(w.item()) * 2)
loss.backward()
"""


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_of_several_ways_is_cut(run: Run, dtype: str) -> None:  # noqa: F811
    _, trace = run(PARTLY_CUT.format(dtype=dtype))
    assert [found.code for found in diagnose(trace)] == ["branch-detached"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_leave_torch(run: Run, dtype: str) -> None:  # noqa: F811
    _, trace = run(LEFT_TORCH.format(dtype=dtype))
    (found,) = diagnose(trace)
    assert ("graph_cut_here", 3) in [(label.role, label.span.line) for label in found.labels]


def test_whole_numbers_have_no_gradient(run: Run) -> None:  # noqa: F811
    _, trace = run(PARTLY_CUT.format(dtype="float32").replace("(w * 3).detach()", "w.argmax()"))
    assert diagnose(trace) == ()
