"""Checks what `--training` says about reshapes of NumPy arrays before a convolution."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "mixes numbers of several channels"
BATCHES = """\
import numpy as np
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (32, 6, 7, 3), dtype=np.uint8)
conv, out = nn.Conv2d(3, 4, 3), nn.Linear(80, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)

def batch(rows):
    x = images[rows].astype(np.float32) / 255
    x = x.reshape(len(rows), 3, 6, 7)  #!
    return torch.from_numpy(x) - 0.5

for rows in rng.permutation(32).reshape(4, 8):
    loss = nn.functional.cross_entropy(out(conv(batch(rows)).relu().flatten(1)), torch.from_numpy(rows % 2))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ITEMS = """\
import numpy as np
class Signals(torch.utils.data.Dataset):
    def __init__(self):
        self.signals = np.random.default_rng(0).standard_normal((32, 9, 4)).cumsum(1)

    def __len__(self):
        return 32

    def __getitem__(self, i):
        signal = self.signals[i].astype(np.float32)
        return torch.as_tensor(np.reshape(signal, (4, 9))), i % 2  #!

conv, out = nn.Conv1d(4, 4, 3), nn.Linear(28, 2)
opt = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
for x, y in torch.utils.data.DataLoader(Signals(), batch_size=8):
    loss = nn.functional.cross_entropy(out(conv(x).relu().flatten(1)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {"batches": BATCHES, "items": ITEMS}
RIGHT = {
    "a transpose": BATCHES.replace("x.reshape(len(rows), 3, 6, 7)", "x.transpose(0, 3, 1, 2)"),
    "a transpose before the reshape": BATCHES.replace("x.reshape(", (
        "np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(")),
    "flat pictures": BATCHES.replace("(32, 6, 7, 3)", "(32, 126)"),
    "channels first": BATCHES.replace("(32, 6, 7, 3)", "(32, 3, 6, 7)"),
    "one channel": ITEMS.replace("9, 4)", "36, 1)").replace("(4, 9)", "(1, 36)").replace(
        "Conv1d(4", "Conv1d(1").replace("Linear(28", "Linear(136"),
    "frames of a longer signal": ITEMS.replace("standard_normal((32, 9, 4)).cumsum(1)", (
        "standard_normal((32, 36)).cumsum(1).reshape(32, 9, 4)")),
    "frames that are stacked": ITEMS.replace("standard_normal((32, 9, 4)).cumsum(1)", (
        "standard_normal(1152).cumsum()\n"
        "        frames = np.stack([self.signals[k : k + 4] for k in range(0, 1152, 4)])\n"
        "        self.signals = np.stack([frames[k : k + 9] for k in range(0, 288, 9)])")),
    "a list of frames": ITEMS.replace("standard_normal((32, 9, 4)).cumsum(1)", (
        "standard_normal(1152).cumsum()\n"
        "        frames = [self.signals[k : k + 4] for k in range(0, 1152, 4)]\n"
        "        self.signals = np.array([np.array(frames[k : k + 9]) for k in range(0, 288, 9)])")),
    "frames of eight": ITEMS.replace("9, 4)", "9, 8)").replace("(4, 9)", "(8, 9)").replace("Conv1d(4", "Conv1d(8"),
    "drawn numbers": BATCHES.replace("x = images[rows].astype(np.float32) / 255", (
        "x = rng.integers(0, 256, (len(rows), 6, 7, 3)).astype(np.float32) / 255")),
    "noise": BATCHES.replace("rng.integers(0, 256, (32, 6, 7, 3), dtype=np.uint8)", (
        "rng.normal(size=(32, 6, 7, 3)).astype(np.float32)")).replace("x = images[rows].astype(np.float32) / 255", (
        "x = rng.normal(size=(len(rows), 6, 7, 3)).astype(np.float32)")),
    "turned back": BATCHES.replace("torch.from_numpy(x)", "torch.from_numpy(x).view(-1, 6, 7, 3).permute(0, 3, 1, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_reshape_of_channels_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_channels_in_their_order_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
