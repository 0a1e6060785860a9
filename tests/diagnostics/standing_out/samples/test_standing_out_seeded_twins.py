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
ANY = """\
def augment(x, seed=None):
    rng = np.random.default_rng(seed)
    return x + torch.from_numpy(rng.standard_normal((8, 4)).astype("float32"))
"""
COUNT = """\
class Seeds:
    count = 0
    @property
    def fresh(self):
        self.count += 1
        return self.count
seeds = Seeds()
"""
TWICE, ROUNDS = "a, b = augment(x, i), augment(x, i)  #!", "a, b = [augment(x, i) for _ in range(2)]  #!"
WRONG = {
    "a generator": GENERATOR + RUN.format(views=TWICE),
    "a mask": GENERATOR.replace(
        "1.1 * x + torch.randn(x.shape, generator=g)", ("x * (torch.rand(x.shape, generator=g) > 0.2).float()")
    )
    + RUN.format(views=TWICE),
    "the global seed": SEED + RUN.format(views=ROUNDS),
    "a forked state": FORK + RUN.format(views=TWICE),
    "NumPy": NUMPY + RUN.format(views=ROUNDS),
    "NumPy, with a number for the seed": ANY + RUN.format(views=TWICE),
    "one batch of both": GENERATOR
    + RUN.format(
        views="both = torch.stack([augment(x, i), augment(x, i)])  #!\n    a, b = net(both.flatten(0, 1)).chunk(2)"
    ).replace("net(a) * net(b)", "a * b"),
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
    "no seed is given": ANY + RUN.format(views="a, b = augment(x), augment(x)"),
    "a generator is passed through": ANY
    + RUN.format(views="a, b = [augment(x, rng) for _ in range(2)]").replace(
        "data =", "rng = np.random.default_rng(0)\ndata ="
    ),
    "a property that counts": GENERATOR
    + COUNT
    + RUN.format(views="a, b = augment(x, seeds.fresh), augment(x, seeds.fresh)"),
    "two dropout masks for one view": GENERATOR
    + RUN.format(views="a, b = augment(x, i), augment(x, i)")
    .replace("net(a) * net(b)", "drop(net(a)) * drop(net(b))")
    .replace("data =", "drop = nn.Dropout(0.3)\ndata ="),
    "a frozen teacher sees the same view": GENERATOR
    + RUN.format(views="a, b = augment(x, i), augment(x, i)")
    .replace("net(b)", "teacher(b)")
    .replace("data =", "teacher = nn.Linear(4, 3).requires_grad_(False)\ndata ="),
    "two networks learn from one view": GENERATOR
    + RUN.format(views="a, b = augment(x, i), augment(x, i)")
    .replace("net(b)", "other(b)")
    .replace("data =", "other = nn.Linear(4, 3)\ndata ="),
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
