"""Checks the sentences about two views of a sample that one seed makes equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

RUN = """
import numpy as np
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(6, 4)
for i in range(6):
    x = data[i : i + 1].repeat(8, 1)
    {views}
    loss = -(net(a) * net(b)).sum()
    opt.zero_grad(); loss.backward(); opt.step()
"""
GENERATOR = """\
def augment(x, index):
    g = torch.Generator().manual_seed(7 + index)
    return 1.1 * x + torch.randn(x.shape, generator=g)
"""
SEED = """\
def augment(x, index):
    torch.manual_seed(index)
    return x + torch.randn_like(x)
"""
FORK = """\
def augment(x, index):
    with torch.random.fork_rng():
        torch.manual_seed(index)
        return x * torch.rand_like(x)
"""
NUMPY = """\
def augment(x, index):
    rng = np.random.default_rng((3, index))
    return x + torch.from_numpy(rng.standard_normal((8, 4)).astype("float32"))
"""
TWICE, ROUNDS = "a, b = augment(x, i), augment(x, i)  #!", "a, b = [augment(x, i) for _ in range(2)]  #!"
WRONG = {
    "a generator": GENERATOR + RUN.format(views=TWICE),
    "the global seed": SEED + RUN.format(views=ROUNDS),
    "a forked state": FORK + RUN.format(views=TWICE),
    "NumPy": NUMPY + RUN.format(views=ROUNDS),
    "two lines": GENERATOR + RUN.format(views="a = augment(x, i)  #!\n    b = augment(x, i)"),
}
RIGHT = {
    "a seed for each view": GENERATOR + RUN.format(views="a, b = augment(x, 2 * i), augment(x, 2 * i + 1)"),
    "further numbers from elsewhere": """\
def augment(x, index):
    g = torch.Generator().manual_seed(7 + index)
    return x + torch.randn(x.shape, generator=g) + torch.randn(4)
"""
    + RUN.format(views=TWICE.removesuffix("  #!")),
    "an image and its mask": GENERATOR + RUN.format(views="a, b = augment(x, i), augment(-x, i)"),
    "two networks with one start": """\
def build(width, seed):
    torch.manual_seed(seed)
    return nn.Linear(width, width)
width = 4
one, other = build(width, 0), build(width, 0)
opt = torch.optim.SGD(one.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    with torch.no_grad():
        y = other(x)
    opt.zero_grad(); (one(x) - y - 1).square().mean().backward(); opt.step()
""",
}
WORDS = "runs again with the same arguments"


@pytest.mark.parametrize("name", WRONG)
def test_views_that_one_seed_makes_equal_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_seeds_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
