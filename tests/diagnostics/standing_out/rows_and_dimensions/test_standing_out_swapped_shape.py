"""Checks the sentence about reshapes where a transpose is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TRACKS = """\
net = nn.Linear(2, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.stack([torch.randn(4, 2) for _ in range(6)])
    out = {}
    loss = out.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a stack": TRACKS.format("net(x.view(4, 6, 2))  #!"),
    "parts in a stack": TRACKS.format("torch.stack([net(x)[:2, :, :1].flatten() for _ in range(2)]).view(8, 2)  #!"),
    "the result of a layer": TRACKS.format("net(x).reshape(4, 6, 3)  #!"),
    "channels": TRACKS.format("net(x).reshape(6, 3, 4)  #!"),
    "a new dimension": TRACKS.format("net(x[..., :1].expand(6, 4, 2)); out = torch.stack("
                                     "[net(x)[n, :, 0] for n in range(6)]).view(4, 6, 1) * out.sum()  #!"),
}  # fmt: skip
RIGHT = {
    "a transpose": TRACKS.format("net(x.transpose(0, 1))"),
    "merged": TRACKS.format("net(x.view(24, 2))"),
    "turned back": TRACKS.format("net(x.view(4, 6, 2)).view(4, 6, 3); x.view(4, 6, 2).view(6, 4, 2)"),
    "split by a factor": TRACKS.format("net(torch.stack([torch.randn(3, 2) for _ in range(6)])).view(3, 6, 3)"),
    "steps that are joined two by two": TRACKS.format(
        "torch.stack([net(x)[:3, :, 0] for _ in range(8)], 1).view(3, 4, 8)"
    ),
    "one sequence, cut anew": TRACKS.format(
        "net(x) * torch.stack([torch.randn(4) for _ in range(6)]).view(4, 6).sum()"
    ),
    "groups": TRACKS.format("net(x.view(6, 2, 2, 2))"),
    "of its own order": TRACKS.format("net(torch.arange(48.0).view(6, 4, 2).view(4, 6, 2))"),
}
WORDS = "and moves no number"


@pytest.mark.parametrize("name", WRONG)
def test_a_reshape_in_place_of_a_transpose_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_reshapes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
