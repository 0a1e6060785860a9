"""Tests what is said about the passes of two ranks through one wrapper."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ranks import run_in_ranks
from support.warm import Warm

BEGIN = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
"""
TRAINS = """\
data = TensorDataset(torch.randn(24, 3))
sampler = SAMPLER
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
for (x,) in DataLoader(data, batch_size=4, sampler=sampler, shuffle=sampler is None):
    model.zero_grad()
    model(INPUT).square().mean().backward()
dist.destroy_process_group()
"""
EXPERTS = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = torch.nn.ModuleList([torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)])

    def forward(self, x, number):
        return self.experts[number](x)


model = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
for step in range(30):
    model.zero_grad()
    number = dist.get_rank() if step >= 18 else 0
    model(torch.randn(2, 3), number).mean().backward()
print([p.grad.tolist() for p in model.parameters() if p.grad is not None])
dist.destroy_process_group()
"""


def said(warm: Warm, folder: Path, program: str, kind: str) -> list[str]:
    (folder / "train.py").write_text(BEGIN + program)
    ran, report = run_in_ranks(warm, folder / "train.py", 2)
    assert [each.returncode for each in ran] == [0, 0], ran[0].stderr
    assert report.findings == ()
    return [each.text for each in report.differences if each.kind == kind]


def test_ranks_that_draw_the_same_batches_are_said(warm: Warm, tmp_path: Path) -> None:
    program = TRAINS.replace("SAMPLER", "None").replace("INPUT", "x")
    (text,) = said(warm, tmp_path, program, "inputs")
    same = "ranks 0 and 1 gave the `DistributedDataParallel` model the same inputs in all 6 forward passes"
    assert text == f"{same} (first at line 12)"


@pytest.mark.parametrize(
    ("sampler", "given"),
    [
        ("DistributedSampler(data)", "x"),
        ("None", "torch.ones(4, 3)"),  # a constant
        ("None", "x + dist.get_rank()"),
        ("None", "x.to_sparse()"),  # not read
    ],
)
def test_other_inputs_and_constant_ones_are_not(warm: Warm, tmp_path: Path, sampler: str, given: str) -> None:
    program = TRAINS.replace("SAMPLER", sampler).replace("INPUT", given)
    assert said(warm, tmp_path, program, "inputs") == []


def test_parameters_that_backward_arrives_at_on_one_rank_only_are_said(warm: Warm, tmp_path: Path) -> None:
    passed = "in 2 of 20 backward passes, first at line 20"
    assert said(warm, tmp_path, EXPERTS, "arrival") == [
        f"backward arrived on rank 0 only at `experts.0.weight`, `experts.0.bias`, {passed}",
        f"backward arrived on rank 1 only at `experts.1.weight`, `experts.1.bias`, {passed}",
    ]


def test_values_are_the_same_with_the_lens(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BEGIN + EXPERTS)
    traced = [ran.stdout for ran, _ in warm.ranks(tmp_path / "train.py", 2)]
    assert traced == [ran.stdout for ran in warm.plain_ranks(tmp_path / "train.py", 2)]
