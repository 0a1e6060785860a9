"""C reads the gradients of steady steps as Python does (`tensorlens/tracer/training/steady_steps.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.recording import compiled
from tensorlens.tracer.recording._fast_path import FastPath
from tensorlens.tracer.training.steady_steps import FoundParameter, _alike

pytestmark = pytest.mark.skipif(compiled.FastPath is None, reason="not built from this source: python hatch_build.py")

PLAIN = torch.tensor([[0.0, -0.0, 1.0], [float("nan"), 1e-45, -2.0]])
LARGE = torch.ones(1 << 17)
ROW = PLAIN[:1]  # in these tests its marks have another shape
SPARSE = torch.eye(2).to_sparse()


@pytest.fixture
def in_c() -> Iterator[FastPath]:
    recorder = new_recorder((__file__,), training=True)
    assert recorder.tensor_ids.in_c is not None
    yield recorder.tensor_ids.in_c
    recorder.close()


@pytest.mark.parametrize("gradient", [PLAIN, PLAIN.double(), torch.tensor(3.0), torch.empty(0, 2)[:, :1].contiguous()])
def test_c_marks_the_elements_that_are_not_zero(in_c: FastPath, gradient: torch.Tensor) -> None:
    marks = torch.zeros(gradient.shape, dtype=torch.bool)
    expected = marks.logical_or(gradient)
    assert in_c.mark(marks, gradient) is (gradient.numel() > 0)
    assert torch.equal(marks, expected)


@pytest.mark.parametrize(
    "gradient", [PLAIN.t(), PLAIN.half(), PLAIN.to(torch.complex64), LARGE, SPARSE, ROW, PLAIN.to("meta")]
)
def test_c_leaves_other_gradients_to_python(in_c: FastPath, gradient: torch.Tensor) -> None:
    marks = torch.zeros(gradient.shape if gradient is not ROW else (3, 1), dtype=torch.bool)
    assert in_c.mark(marks, gradient) is False
    assert not marks.any()


@pytest.mark.parametrize(
    "gradients",
    [
        [PLAIN, LARGE],
        [PLAIN, PLAIN.double()],
        [PLAIN, SPARSE],
        [PLAIN, None],
        [PLAIN, PLAIN.to("meta")],
        [PLAIN, torch.nn.Buffer(PLAIN)],
        [],
    ],
)
def test_c_finds_the_same_gradients_alike(in_c: FastPath, gradients: list[torch.Tensor | None]) -> None:
    found: list[FoundParameter] = [(PLAIN, 5 + n, 0, each, 1, 0) for n, each in enumerate(gradients)]
    numbers = tuple(range(5, 5 + len(gradients)))
    for asked in (numbers, (*numbers, 3), (*numbers[1:], 3)):
        known, expected = in_c.alike(found, asked), _alike(found, asked)
        assert [id(each) for each in known or []] == [id(each) for each in expected or []]
