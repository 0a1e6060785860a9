"""Checks the sentence about fractions that a line writes to a tensor of whole numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MEAN = """\
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.arange(8) % 4
targets = nn.functional.one_hot(y, 4)
for _ in range(3):
    loss = -(net(x).log_softmax(1) * targets).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        targets.copy_(0.7 * targets + 0.3 * net(x).softmax(1))  #!
"""
COPY = "targets.copy_(0.7 * targets + 0.3 * net(x).softmax(1))"
WRONG = {
    "copy_": MEAN,
    "an item": MEAN.replace(COPY, "targets[:4] = net(x[:4]).softmax(1)"),
    "a number": MEAN.replace(COPY, "targets[y == 0] = 0.25"),
}
VOTES = """\
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, votes = torch.randn(8, 3), nn.functional.one_hot(torch.randint(0, 4, (8, 5)), 4)
targets = torch.zeros_like(votes[:, 0])
for row, each in enumerate(votes):
    targets[row] = each.float().mean(dim=0)  #!
for _ in range(3):
    loss = -(net(x).log_softmax(1) * targets).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SHARE = "each.float().mean(dim=0)"
WRONG |= {
    "votes": VOTES,
    "votes by their sum": VOTES.replace(SHARE, "(n := each.sum(0).float()) / n.sum()"),
    "votes by their number": VOTES.replace(f"targets[row] = {SHARE}", (
        "n = torch.bincount(each.argmax(1), minlength=4)\n    targets[row] = n / n.sum().clamp(min=1)")),
    "comparisons": VOTES.replace("zeros_like(votes[:, 0])", "full((8, 4), 0)").replace(SHARE, (
        "(each == 1).double().mean(0)")),
}  # fmt: skip
RIGHT = {
    "votes that are floats": VOTES.replace("votes[:, 0])", "votes[:, 0], dtype=torch.float32)"),
    "the vote of most": VOTES.replace(SHARE, "(each.float().mean(0) > 0.5).float()"),
    "percents": VOTES.replace(SHARE, "(n := each.sum(0).float()) / n.sum() * 100"),
    "a rounded mean": VOTES.replace(SHARE, "each.float().mean(0).round()"),
    "a mask for each column": VOTES.replace(SHARE, "(x[row, 0] > 0).expand(4, 3).float().mean(1)"),
    "a mean of whole numbers": VOTES.replace(SHARE, "torch.arange(12.0).view(3, 4).mean(0)"),
    "a tensor of floats": MEAN.replace("one_hot(y, 4)", "one_hot(y, 4).float()"),
    "classes": MEAN.replace(COPY, "targets.copy_(nn.functional.one_hot(net(x).argmax(1), 4).float())"),
    "rounded": MEAN.replace(COPY, "targets.copy_(net(x).softmax(1).round())"),
    "a whole number": MEAN.replace(COPY, "targets[y == 0] = 1.0"),
    "counts": MEAN.replace(COPY, "targets.copy_((net(x) > 0).float() + 0.0)"),
}
RIGHT |= {
    "levels": MEAN.replace(COPY, "targets.copy_(net(x).sigmoid() * 15 + 0.5)"),
    "another target of the line": MEAN.replace(COPY, "targets[int(targets.copy_(targets + 0).max())] = 1"),
    "a number that no float can have": MEAN.replace(COPY, f"targets[0] = 1{'0' * 400} % 7"),
}
WORDS = "it keeps no fractions"


@pytest.mark.parametrize("name", WRONG)
def test_lost_fractions_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "to `targets`, a tensor of int64" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_whole_numbers_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
