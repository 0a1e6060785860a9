"""Checks what `--training` says about arithmetic of bytes that wraps around."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "wrap around"
CLIPS = """\
video = torch.randint(0, 256, (32, 5, 6, 6), dtype=torch.uint8)
conv, out = nn.Conv2d(4, 3, 3), nn.Linear(48, 2)
opt = torch.optim.SGD([*conv.parameters(), *out.parameters()], lr=0.01)

def motion(frames):
    moved = frames[:, 1:] - frames[:, :-1]  #!
    return moved.float() / 255

for _ in range(4):
    rows = torch.randint(0, 32, (8,))
    loss = nn.functional.cross_entropy(out(conv(motion(video[rows])).flatten(1)), rows % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ONCE = """\
class Scans(torch.utils.data.Dataset):
    def __init__(self):
        scans = torch.randint(0, 256, (32, 4, 6, 6), dtype=torch.uint8)
        self.scans = torch.add(scans, 40).clamp(max=255)  #!

    def __len__(self):
        return 32

    def __getitem__(self, i):
        return self.scans[i].flip(1), i % 2

conv, out = nn.Conv2d(4, 3, 3), nn.Linear(48, 2)
opt = torch.optim.SGD([*conv.parameters(), *out.parameters()], lr=0.01)
for x, y in torch.utils.data.DataLoader(Scans(), batch_size=8, shuffle=True):
    loss = nn.functional.cross_entropy(out(conv(x.to(torch.float32)).flatten(1)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DIFFERENCE = "frames[:, 1:] - frames[:, :-1]"
CODED = """\
signal = torch.randint(0, 256, (64, 33), dtype=torch.uint8)
net = nn.Linear(32, 32)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
coded = signal[:, 1:] - signal[:, :-1]
for rows in torch.randperm(64).split(16):
    x = coded[rows].float() / 255
    loss = nn.functional.mse_loss(net(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SIGNED = """\
images = torch.randint(0, 256, (64, 1, 8, 8), dtype=torch.uint8)
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for rows in torch.arange(64).split(16):
    signed = {signed}
    loss = nn.functional.cross_entropy(net(signed.float() / 128), rows % 3)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FILTERED = """\
images = torch.randint(0, 256, (64, 8, 9), dtype=torch.uint8)
filtered = {filtered}
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for rows in torch.arange(64).split(16):
    loss = nn.functional.cross_entropy(net(filtered[rows, :, -8:].float() / 255), rows % 3)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a difference": CLIPS,
    "a sum, once": ONCE,
    "a square": CLIPS.replace(DIFFERENCE, "(frames[:, 1:] - 0).pow(2)"),
}
RIGHT = {
    "as floats": CLIPS.replace(DIFFERENCE, "frames[:, 1:].float() - frames[:, :-1].float()"),
    "as longer numbers": CLIPS.replace(DIFFERENCE, "frames[:, 1:].to(torch.int16) - frames[:, :-1]"),
    "within the range": CLIPS.replace(DIFFERENCE, "frames[:, 1:] - frames[:, 1:].amin((2, 3), keepdim=True)"),
    "the greater less the other": CLIPS.replace(DIFFERENCE, (
        "torch.where(frames[:, 1:] > frames[:, :-1], frames[:, 1:] - frames[:, :-1], frames[:, :-1] - frames[:, 1:])")),
    "a blend that is exact": CLIPS.replace(DIFFERENCE, (
        "frames[:, :-1] + (frames[:, 1:] - frames[:, :-1]) * (frames[:, 1:] > 99)")),
    "places on a circle": CLIPS.replace("moved.float() / 255", "(moved.float() * (torch.pi / 128)).cos()"),
    "shares of a circle": CLIPS.replace("moved.float() / 255", "moved.float() / 256"),
    "a mask of the greater ones": CLIPS.replace("moved.float()", "moved.float() * (frames[:, 1:] > frames[:, :-1])"),
    "a hue, which turns round": CLIPS.replace(DIFFERENCE, "hue").replace(
        "    moved", "    hue = frames[:, 1:] + 60\n    moved"),
    "one channel, joined with the others": CLIPS.replace(DIFFERENCE, (
        "torch.stack([frames[:, 0] + 60, frames[:, 1], frames[:, 2], frames[:, 3], frames[:, 4]], 1)[:, :4]")),
    "differences as a code": CODED,
    "a program with remainders": CLIPS.replace("opt = ", "hues = torch.arange(9) * 50 % 256\nopt = "),
    "signed bytes, by a view": SIGNED.format(signed="(images[rows] - 128).view(torch.int8)"),
    "signed bytes, by a cast": SIGNED.format(signed="(images[rows] - 128).to(torch.int8)"),
    "the filter of an image coder": FILTERED.format(filtered="images[:, :, 1:] - images[:, :, :-1]"),
    "the filter, of a rolled image": FILTERED.format(filtered="images - images.roll(1, 2)"),
    "the filter, of a copy": FILTERED.format(filtered="images[:, :, 1:].clone() - images[:][:, :, :-1]"),
    "not for the model": CLIPS.replace("return moved.float()", "print(moved.float().mean())\n    return frames[:, 1:]"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bytes_that_wrap_around_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "computes in uint8, which holds 0 to 255" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_exact_results_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
