"""Checks the sentence about a tensor that several modules were given while a line changed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

MASKS = """\
import torch
from torch import nn
class Half(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.out(x * self.mask) * (1 - self.mask)

layers = nn.ModuleList()
mask = torch.zeros(4)
mask[::2] = 1.0
for _ in range(4):
    layers.append(Half(mask))
    mask.neg_().add_(1.0)  #!
net = nn.Sequential(*layers)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_DICT = MASKS.replace("layers = nn.ModuleList()", "layers = nn.ModuleDict()").replace("*layers", "*layers.values()")
OTHERS = {
    "a dict of modules": OF_DICT.replace("layers.append(Half(mask))", "layers[f'x{len(layers)}'] = Half(mask)"),
    "an output argument": MASKS.replace("mask.neg_().add_(1.0)", "torch.neg(mask, out=mask)"),
    "a slice": MASKS.replace("mask.neg_().add_(1.0)", "mask[:] = torch.roll(mask, 1) * 0.5"),
}
RIGHT = {
    "copies": MASKS.replace("Half(mask)", "Half(mask.clone())"),
    "out of place": MASKS.replace("mask.neg_().add_(1.0)", "mask = 1 - mask"),
    "one that stays": MASKS.replace("    mask.neg_().add_(1.0)  #!\n", ""),
    "one that is filled first": MASKS.replace("    mask.neg_().add_(1.0)  #!\n", "").replace(
        "for _ in range(4)", "mask.neg_().add_(1.0)\nfor _ in range(4)"),
    "a table that a loop fills first": MASKS.replace("    mask.neg_().add_(1.0)  #!\n", "").replace(
        "layers = nn.ModuleList()\n", "layers = nn.ModuleList()\nmask = torch.zeros(4)\n").replace(
        "mask = torch.zeros(4)\nmask[::2] = 1.0\n", "for i in range(4):\n    mask[i] = i % 2\n"),
    "a table with a row for each": MASKS.replace("mask.neg_().add_(1.0)  #!", "mask[len(layers) - 1] = 0.5"),
    "one that is filled anew": MASKS.replace("mask.neg_().add_(1.0)  #!", "mask.fill_(0.5)"),
    "an output of other values": MASKS.replace("mask.neg_().add_(1.0)  #!", "torch.mul(torch.ones(4), 0.5, out=mask)"),
    "a slice of other values": MASKS.replace("mask.neg_().add_(1.0)  #!", "mask[:] = torch.full((4,), 0.5)"),
    "a count": MASKS.replace("mask.neg_().add_(1.0)  #!", "mask.add_(1.0)").replace(
        "torch.zeros(4)\nmask[::2] = 1.0", "torch.zeros(1)"),
    "a constructor": MASKS.replace("    mask.neg_().add_(1.0)  #!\n", "").replace(
        "        self.out =", "        self.mask.neg_().add_(1.0)\n        self.out ="),
    "one that the training changes": MASKS.replace("    mask.neg_().add_(1.0)  #!\n", "").replace(
        "    opt.step()", "    opt.step()\n    mask.mul_(0.9)"),
}  # fmt: skip
WORDS = "all of them have its last values"


def test_one_mask_of_several_modules_is_named(tmp_path: Path) -> None:
    (found,), _ = said(tmp_path, MASKS, WORDS)
    assert "`layers[0].mask`, `layers[1].mask` and 2 more are one tensor, which `mask.neg_().add_(1.0)`" in found.text
    assert found.labels[0].span.line == MASKS.splitlines().index("    mask.neg_().add_(1.0)  #!") + 3  # below `with`


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_are_named(tmp_path: Path, name: str) -> None:
    (found,), _ = said(tmp_path, OTHERS[name], WORDS)
    assert found.labels[0].span.line == OTHERS[name][: OTHERS[name].index("#!")].count("\n") + 3


@pytest.mark.parametrize("name", RIGHT)
def test_other_masks_are_left_alone(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, RIGHT[name], WORDS)[0] == []
