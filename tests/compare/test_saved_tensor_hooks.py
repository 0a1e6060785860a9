"""The default saved-tensor hooks are known where PyTorch can't be asked for them, too."""

from __future__ import annotations

import pytest
import torch

from tensorlens.compare.probe import saved_tensor_hooks
from tensorlens.compare.probe.saved_tensor_hooks import top_hooks


def same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def test_hooks_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    autograd = torch._C._autograd
    monkeypatch.setattr(saved_tensor_hooks, "_TOP", None)
    for name in ("_push_saved_tensors_default_hooks", "_pop_saved_tensors_default_hooks"):
        monkeypatch.setattr(autograd, name, getattr(autograd, name))  # restored in the end
    saved_tensor_hooks._follow()
    assert top_hooks() is None
    with torch.autograd.graph.saved_tensors_hooks(same, same):
        assert top_hooks() == (same, same)
        with torch.autograd.graph.saved_tensors_hooks(abs, abs):
            assert top_hooks() == (abs, abs)
        assert top_hooks() == (same, same)
    assert top_hooks() is None
