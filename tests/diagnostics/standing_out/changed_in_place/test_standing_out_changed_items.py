"""Checks the sentence about items that a dataset keeps as NumPy arrays, and that its transforms write into."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MASK = """\
import numpy as np
from torch.utils.data import DataLoader, Dataset
rng = np.random.default_rng(0)
class Mask:
    def __call__(self, row):
        at = rng.integers(0, 3)
        row[at:at + 2] = 0.0  #!
        return row
class Rows(Dataset):
    def __init__(self, transforms):
        self.rows = [rng.standard_normal(4).astype(np.float32) for _ in range(8)]
        self.transforms = transforms
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        row = self.rows[i]
        for each in self.transforms:
            row = each(row)
        return torch.from_numpy(row)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Rows([Mask()]), batch_size=4, shuffle=True)
for epoch in range(4):
    for x in loader:
        opt.zero_grad(); model(x).square().mean().backward(); opt.step()
"""
APPLY = "        for each in self.transforms:\n            row = each(row)\n"
WRITE = "row[at:at + 2] = 0.0  #!"
PLAIN = MASK.replace("  #!", "")
NOISE = "        row += 0.1 * rng.standard_normal(4).astype(np.float32)  #!\n"
LOAD = (
    "    def load(self, i):\n        if i not in self.kept:\n            self.kept[i] = self.rows[i] * 2\n"
    "        return self.kept[i]\n    def __getitem__"
)
WRONG = {
    "a transform": MASK,
    "noise on a row of one array": PLAIN.replace("for _ in range(8)]", "for _ in range(8)]\n        self.rows = "
                                                 "np.stack(self.rows)").replace(APPLY, NOISE),
    "a method": PLAIN.replace(APPLY, "        row = self.add(row)\n").replace("    def __len__", (
        "    def add(self, x):\n        gain = rng.uniform(0.5, 1.5)\n        x *= gain  #!\n        return x\n"
        "    def __len__")),
    "a function that a name leads to": PLAIN.replace("class Rows", (
        "def jitter(x):\n    np.add(x, rng.normal(size=4), out=x, casting='unsafe')  #!\n    return x\nclass Rows"
        )).replace("Mask()", "jitter").replace("[at:at + 2] = 0.0", "* 1"),
    "a scale, and a dict": PLAIN.replace("row = self.rows[i]", "item = self.rows[i]\n        row = item['x']").replace(
        "[rng.standard_normal(4).astype(np.float32) for", "[{'x': rng.standard_normal(4).astype(np.float32)} for"
        ).replace(APPLY, "        row /= 2.0  #!\n"),
    "a cache": PLAIN.replace("self.transforms = transforms", "self.kept = {}").replace("    def __getitem__", LOAD)
    .replace("row = self.rows[i]", "row = self.load(i)").replace(APPLY, NOISE),
    "in one expression": MASK.replace("row = self.rows[i]\n" + APPLY, "pass\n").replace(
        "from_numpy(row)", "from_numpy(self.transforms[0](self.rows[i]))"),
    "arrays that the loader makes tensors of": MASK.replace("torch.from_numpy(row)", "row, i").replace("for x in", (
        "for x, _ in")),
}  # fmt: skip
RIGHT = {
    "a copy": PLAIN.replace("self.rows[i]", "self.rows[i].copy()"),
    "a transform that copies": PLAIN.replace("at = rng", "row = row.copy()\n        at = rng"),
    "scaled once, at the start": PLAIN.replace("self.transforms = transforms", (
        "for row in self.rows:\n            row /= 2.0")).replace(APPLY, ""),
    "a row that is refilled": PLAIN.replace(APPLY, "        row[:] = rng.standard_normal(4)\n        row[1:3] += "
                                            "rng.uniform(0, 1)\n"),
    "rows that are set back": PLAIN.replace("    for x in", "    for row in loader.dataset.rows: row[:] = 1.0\n    "
                                            "for x in"),
    "a row that is filled by a function": PLAIN.replace(APPLY, "        np.copyto(row, rng.normal(size=4))\n"
                                                        "        row *= rng.uniform(0, 1)\n"),
    "a copy that a loader makes a tensor of": PLAIN.replace("self.rows[i]", "self.rows[i].copy()").replace(
        "torch.from_numpy(row)", "row"),
    "a copy of the same name, and a scratch array": PLAIN.replace(APPLY, "        row = row.copy()\n" + NOISE.replace(
        "  #!", "") + "        np.sin(i * np.arange(4.0), out=self.transforms)\n").replace(
        "torch.from_numpy(row)", "torch.from_numpy(row), torch.from_numpy(self.transforms).clone().float()").replace(
        "Rows([Mask()])", "Rows(np.zeros(4))").replace("for x in", "for x, _ in"),
    "points of a set": PLAIN.replace(APPLY, "        np.random.shuffle(row)\n"),
    "a norm": PLAIN.replace(APPLY, "        row -= row.mean()\n        row /= np.linalg.norm(row)\n"),
    "a random sign": PLAIN.replace(APPLY, "        row *= rng.choice([-1.0, 1.0])\n"),
    "counts": PLAIN.replace(APPLY, "        row += 1\n"),
    "one that keeps the mean": PLAIN.replace(APPLY, "        row -= row.mean()\n"),
}  # fmt: skip
WORDS = "gives out without a copy"


@pytest.mark.parametrize("name", WRONG)
def test_a_kept_item_that_a_line_writes_into_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert " times, an item that is read again has other" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_items_that_are_copied_or_filled_anew_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
