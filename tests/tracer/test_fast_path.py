"""Checks what the fast path assumes of functions (`ops.call_kind`) with PyTorch's own sample inputs."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from support.daily import one_in
from torch.testing._internal.common_methods_invocations import op_db

import tensorlens
from tensorlens.tracer.patches import table
from tensorlens.tracer.recording.ops import NORM, ORDINARY, SIMPLE, SLOW, VIEW, call_kind, kind_of_norm

SAMPLES = 2
KINDS = (torch.float64, torch.int64)


def functions(op: Any) -> list[Any]:
    found = [op.op, getattr(torch.Tensor, op.name, None), *op.aliases]
    return [function for function in found if callable(function) and call_kind(function) in (SIMPLE, VIEW)]


def samples(op: Any) -> list[tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]]:
    found = []
    for dtype in KINDS:
        if dtype in op.supported_dtypes("cpu"):
            grad = op.supports_autograd and dtype is not torch.int64
            taken = islice(op.sample_inputs("cpu", dtype, requires_grad=grad), SAMPLES)
            found += [(sample.input, sample.args, sample.kwargs) for sample in taken]
            if not op.supports_autograd and dtype is not torch.int64:  # their node, if there is one, only raises
                found = [(_requiring_grad(value), args, kwargs) for value, args, kwargs in found]
    return [sample for sample in found if type(sample[0]) is torch.Tensor]


def _requiring_grad(value: Any) -> Any:
    return value.detach().requires_grad_() if type(value) is torch.Tensor else value


FAST = [op for op in op_db if functions(op)]
EVERYDAY = 8  # one of so many is checked every day, the others by `make unchanged`
CASES = one_in(EVERYDAY, FAST)


def test_many_functions_take_the_fast_path() -> None:
    kinds = [call_kind(function) for op in FAST for function in functions(op)]
    assert kinds.count(SIMPLE) > 200
    assert kinds.count(VIEW) > 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", CASES, ids=lambda op: f"{op.name}-{op.variant_test_name}")
def test_what_the_fast_path_does_not_read_is_so(op: Any) -> None:
    for function in functions(op):
        for tensor, args, kwargs in samples(op):
            first = torch._C._autograd._get_sequence_nr()
            try:
                result = function(tensor, *args, **kwargs)
            except (RuntimeError, TypeError, NotImplementedError):  # some inputs are for the other overloads
                continue
            drawn = torch._C._autograd._get_sequence_nr() - first
            if type(result) is not torch.Tensor or result.layout is not torch.strided:
                continue
            assert result.requires_grad == bool(drawn)
            if drawn == 1:
                assert result.grad_fn is not None
                assert result.grad_fn._sequence_nr() == first
            if call_kind(function) == VIEW:
                assert result._base is (tensor if tensor._base is None else tensor._base)
                assert result._version == tensor._version
            else:
                assert result._base is None
                assert result._version == 0
                given = [value for value in (tensor, *args) if isinstance(value, torch.Tensor)]
                storages = {value.untyped_storage().data_ptr() for value in given if value.numel()}
                assert not result.numel() or result.untyped_storage().data_ptr() not in storages


@pytest.mark.parametrize(("training", "kind"), [(False, ORDINARY), (True, SLOW)])
def test_look_ups_take_the_fast_path_unless_their_ids_are_looked_at(training: bool, kind: int) -> None:
    with tensorlens.trace(training=training):
        (recorder,) = table._recorders
        torch.nn.functional.embedding(torch.tensor([1]), torch.zeros(2, 3), padding_idx=0)
        assert recorder.call_kinds[torch.nn.functional.embedding] == kind


def kinds_of_batch_norm(training: bool) -> list[int]:
    """Returns the kind of the call while nodes have saved no running statistics, and after one has."""
    norm, data = torch.nn.BatchNorm1d(2), torch.ones(3, 2, requires_grad=True)
    with tensorlens.trace(training=training):
        (recorder,) = table._recorders
        kinds = []
        for is_training in (True, False, True):
            norm.train(is_training)
            norm(data)
            kind = recorder.call_kinds[torch.nn.functional.batch_norm]
            arguments = (data, norm.running_mean, norm.running_var), {"training": True}
            kinds.append(kind_of_norm(recorder.saved_statistics, *arguments) if kind == NORM else kind)
    return kinds


def test_batch_norm_takes_the_fast_path_unless_it_changes_saved_statistics() -> None:
    assert kinds_of_batch_norm(training=False) == [ORDINARY, SLOW, ORDINARY]
    assert kinds_of_batch_norm(training=True) == [SLOW] * 3
    for is_on in (False, True):
        with torch.set_grad_enabled(is_on):
            assert kind_of_norm(set(), (1, 2, 3), {"training": False}) == (SLOW if is_on else ORDINARY)
            assert kind_of_norm(set(), (1, 2, 3), {"training": 1}) == SLOW
            assert kind_of_norm(set(), (1, 2, 3, 4), {"training": True}) == SLOW
