"""Tests what is recorded of `DistributedDataParallel`, and the numbers by which replicas are compared."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from support.warm import Warm

from tensorlens.tracer.patches.replica_values import NOT_COMPUTED, value_numbers

PROGRAM = """\
    import os
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    net[0].bias.requires_grad_(False)
    model = torch.nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        with model.no_sync():
            model(torch.randn(4, 3)).sum().backward()
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
    net.double()
    model(torch.randn(4, 3).double()).sum().backward()
    optimizer.step()
    print([(p.tolist(), p._version) for p in net.parameters()])
    dist.destroy_process_group()
"""


def test_a_wrapper_its_passes_and_its_states_are_recorded(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    (ran, trace), (other, _) = warm.ranks(script, 2)
    assert (ran.returncode, other.returncode) == (0, 0), ran.stderr
    (wrapped,) = trace.inspection.wrapped
    assert wrapped.group == (0, 1)
    assert wrapped.names[:4] == ("0.weight", "0.bias", "1.weight", "1.bias")
    assert wrapped.kinds == ("trained", "frozen", "trained", "trained", "buffer", "buffer", "buffer")
    assert wrapped.forms[:2] == ("[2, 3] float32", "[2] float32")
    assert "find_unused_parameters" in wrapped.options
    states = trace.inspection.replicas
    assert [(state.step, state.moments) for state in states] == [(1, "fBFB"), (2, "fBFB"), (3, "FB"), (-3, "")]
    lines = [trace.sites[site].span.line for site in states[0].sites if site is not None]
    assert lines == [13, 13, 14, 14]
    assert [len(state.unhooked) for state in states] == [0, 0, 3, 0]
    assert states[0].gradients[1] == NOT_COMPUTED


def test_the_lens_changes_no_value(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    traced, _ = zip(*warm.ranks(script, 2), strict=True)
    plain = warm.plain_ranks(script, 2)
    assert [ran.stdout for ran in traced] == [ran.stdout for ran in plain]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.complex64, torch.bool])
@pytest.mark.parametrize("shape", [(4, 6), (3, 3), (1,), (0,), ()])
def test_a_number_depends_on_values_alone(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    tensor = torch.randn(shape).to(dtype) if dtype is not torch.bool else torch.ones(shape, dtype=dtype)
    shifted = torch.zeros(tensor.numel() + 1, dtype=dtype)[1:].view(shape)  # another alignment
    shifted.copy_(tensor)
    turned = tensor.t().contiguous().t() if tensor.dim() == 2 else tensor
    assert len(set(value_numbers([tensor, shifted, turned, tensor.clone()]))) == 1
    if tensor.numel() and dtype is not torch.bool:
        assert value_numbers([tensor + 1]) != value_numbers([tensor])


def test_what_is_not_in_plain_memory_has_no_number() -> None:
    assert value_numbers([None, torch.ones(2, device="meta"), torch.eye(2).to_sparse()]) == (NOT_COMPUTED,) * 3
