"""Finds the same facts otherwise where PyTorch lacks a function, and the program runs as without the lens."""

from __future__ import annotations

import pytest
import torch

from tensorlens.tracer.saved_tensors.unchecked import HookedNodes, Unchecked


def failing() -> tuple[torch.Tensor, torch.Tensor, Unchecked]:
    """Returns a result that was overwritten, the sum that needs it, and how its node reads it."""
    result = torch.ones(3, requires_grad=True).exp()
    total = result.sum()
    node = result.grad_fn
    assert node is not None
    saved = Unchecked(node, "_raw_saved_result", node._raw_saved_result)  # type: ignore[attr-defined]
    result.add_(1)
    return result, total, saved


def test_an_overwritten_tensor_is_read_unchecked() -> None:
    result, _, saved = failing()
    for _ in range(2):
        data = saved.data
        assert data is not None
        assert data.data_ptr() == result.data_ptr()
        assert data._version == result._version


def test_backward_still_raises_after_the_tensor_was_read() -> None:
    _, plain, _ = failing()
    with pytest.raises(RuntimeError) as expected:
        plain.backward()
    result, total, saved = failing()
    assert saved.data is not None
    with pytest.raises(RuntimeError) as error:
        total.backward()
    assert str(error.value) == str(expected.value)
    result.add_(1)
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0"):
        total.backward()


def test_an_intact_tensor_keeps_its_check() -> None:
    x = torch.ones(3, requires_grad=True)
    result = x.exp()
    node = result.grad_fn
    assert node is not None
    assert Unchecked(node, "_raw_saved_result", node._raw_saved_result).data is not None  # type: ignore[attr-defined]
    result.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        result.sum().backward()


def test_a_freed_tensor_is_none() -> None:
    result = torch.ones(3, requires_grad=True).exp()
    node = result.grad_fn
    assert node is not None
    result.sum().backward()
    assert Unchecked(node, "_raw_saved_result", node._raw_saved_result).data is None  # type: ignore[attr-defined]


def test_nodes_made_under_hooks_are_known() -> None:
    hooked = HookedNodes()
    numbers: list[int] = []

    def make() -> None:
        node = torch.ones(3, requires_grad=True).exp().grad_fn
        assert node is not None
        numbers.append(node._sequence_nr())

    make()
    hooked.push()
    make()
    assert hooked.may_have(numbers[1])
    hooked.push()
    make()
    hooked.pop()
    make()
    hooked.pop()
    make()
    assert [hooked.may_have(number) for number in numbers] == [False, True, True, True, False]
    hooked.registers = True
    assert hooked.may_have(numbers[0])
