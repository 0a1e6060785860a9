"""A finding about a deep program names the same tensor as one about a short program."""

import pytest
import torch

import tensorlens
from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.diagnostics.backward_call import _requested_gradients


def test_the_unused_tensor_of_a_deep_graph_is_not_taken_for_another() -> None:
    with tensorlens.trace() as run:
        x, z = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y = x * z.detach()
        for _ in range(MAX_CALLS + 500):
            y = y * 1.00001
        with pytest.raises(RuntimeError, match="not have been used"):
            torch.autograd.grad(y.sum(), [x, z])
    (found,) = run.report().diagnostics
    assert found.code == "unused-input-in-grad"
    assert "the gradient of `z` was asked for" in found.title


@pytest.mark.parametrize(("name", "ending"), [("`x`", "back to this `x`"), ("a tensor", "back to this tensor")])
def test_a_requested_tensor_without_a_name_is_referred_to_as_this_tensor(
    name: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tensorlens.trace() as run:
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="not have been used"):
            torch.autograd.grad(y.sum(), [x])
    monkeypatch.setattr(_requested_gradients, "named", lambda *_: name)
    (found,) = run.report().diagnostics
    assert found.explanation.endswith(ending)
