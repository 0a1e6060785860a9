"""Checks the sentence about buffers that an average of a model keeps, while the trained model changes its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NORM = """\
import copy
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
        return x - self.mean

net = nn.Sequential(Norm(), nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
"""
COPY = "target = copy.deepcopy(net).eval().requires_grad_(False)\n"
UPDATE = """\
@torch.no_grad()
def update():
    for a, p in zip(target.parameters(), net.parameters()):
        a.lerp_(p, 0.01)  #!
    for a, b in ():
        a.copy_(b)

"""
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(8, 4) + 5
    opt.zero_grad()
    (net(x) - 0.9 * target(x)).square().mean().backward()
    opt.step()
    update()
"""
NOISE = (
    NORM.replace("self.mean.lerp_(x.mean(0), 0.1)", "self.mean.copy_(torch.randn(4))") + COPY + UPDATE + TRAIN
)  # of a noisy layer
AVERAGE = """\
class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    def step(self, model):
        for a, p in zip(self.model.parameters(), model.parameters()):
            a.data.mul_(0.99).add_(p.data, alpha=0.01)  #!

average = Average(net)
target = average.model
def update():
    average.step(net)
"""
ALL = NORM + COPY + "def update():\n    with torch.no_grad():\n" + (
    "        torch._foreach_lerp_(list(target.parameters()), list(net.parameters()), 0.01)  #!\n"
) + TRAIN  # fmt: skip
MEAN = NORM + "from torch.optim.swa_utils import AveragedModel\n" + (
    "target = AveragedModel(net, avg_fn=lambda mean, new, count: 0.9 * mean + 0.1 * new).eval()\n"
) + TRAIN.replace("update()", "target.update_parameters(net)")  # fmt: skip
WRONG = {
    "all at once": ALL,
    "a target network": NORM + COPY + UPDATE + TRAIN,
    "a class, and `.data`": NORM + AVERAGE + TRAIN,
    "a new tensor each time": NORM.replace(
        "self.mean.lerp_(x.mean(0), 0.1)", "self.mean.copy_(0.9 * self.mean + 0.1 * x.mean(0))"
    ) + COPY + UPDATE + TRAIN,
}  # fmt: skip
RIGHT = {
    "all at once, and the buffers": ALL.replace(
        "0.01)  #!\n", "0.01)\n        for a, b in zip(target.buffers(), net.buffers()):\n            a.copy_(b)\n"),
    "an AveragedModel, whose buffers update_bn() sets": MEAN,
    "buffers are copied": NORM + COPY + UPDATE.replace("in ():", "in zip(target.buffers(), net.buffers()):") + TRAIN,
    "buffers are copied by their data": NORM + COPY
    + UPDATE.replace("in ():", "in zip(target.buffers(), net.buffers()):").replace("a.copy_(b)", "a.data.copy_(b)")
    + TRAIN,
    "the average updates its own": NORM + COPY.replace(".eval()", "") + UPDATE + TRAIN,
    "one buffer": NORM + COPY + "target[0].mean = net[0].mean\n" + UPDATE + TRAIN,
    "loads now and then": NORM + COPY + UPDATE + TRAIN + "    target[0].load_state_dict(net[0].state_dict())\n",
    "replaced by copies": NORM + COPY + UPDATE + TRAIN + "    target[0].mean = net[0].mean.clone()\n",
    "replaced now and then": NORM + COPY + UPDATE + TRAIN
    + "    if step % 3 == 2:\n        target[0].mean = net[0].mean.clone()\n",
    "changed a few times": NORM.replace("self.training:", "self.training and step in (2, 5):") + COPY + UPDATE + TRAIN,
    "a hook of the steps copies them": NORM + COPY + UPDATE + TRAIN.replace(
        "for step",
        "def copied(*_):\n    target[0].mean.copy_(net[0].mean)\nopt.register_step_post_hook(copied)\nfor step",
    ),
    "arrays copy them": NORM + COPY + UPDATE + TRAIN + "    target[0].mean.numpy()[...] = net[0].mean.numpy()\n",
    "storages copy them": NORM + COPY + UPDATE + TRAIN
    + "    target[0].mean.untyped_storage().copy_(net[0].mean.untyped_storage())\n",
    "of another domain": NORM + COPY + "target[0].mean.copy_(torch.randn(9, 4).mean(0))\n" + UPDATE + TRAIN,
    "only compared": NORM + COPY + UPDATE + TRAIN.replace("target(x)", "target[1:](x)")
    + "    print((target[0].mean - net[0].mean).abs().max())\n",
    "copied anew": NORM + COPY + UPDATE + TRAIN
    + "    if step % 3 == 2:\n        target = copy.deepcopy(net).eval().requires_grad_(False)\n",
    "an iteration": NORM.replace("x.mean(0), 0.1", "x[0] / x[0].norm(), 0.1") + COPY + UPDATE + TRAIN,
    "nothing changes them": NORM.replace("if self.training", "if False") + COPY + UPDATE + TRAIN,
    "noise": NOISE,
    "nothing reads them": NORM + COPY + UPDATE + TRAIN.replace("target(x)", "target[1:](x)"),
    "no average": NORM + COPY + UPDATE.replace("        a.lerp_(p, 0.01)  #!\n", "        pass\n") + TRAIN,
}  # fmt: skip
WORDS = "keeps the values from before"


@pytest.mark.parametrize("name", WRONG)
def test_a_buffer_that_the_update_leaves_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "8 times, but" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_other_buffers_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
