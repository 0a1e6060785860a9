"""Checks the sentence about a seed that is set again and again between training steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 4)
"""
STEP = """\
    opt.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    opt.step()
"""
SEED = "    torch.manual_seed(7)  #!\n"
PREVIEW = "    with torch.no_grad():\n        print(net(torch.randn(1, 4)))\n"
NOISE = STEP.replace("net(x) - y", "net[3](net[0](x + 0.1 * torch.randn(16, 4))) - y")
LOOP = "for step in range(5):\n"
WRONG = {
    "before each step": NET + LOOP + SEED + STEP,
    "after each step": NET + LOOP + STEP + SEED + PREVIEW,
    "in a function": NET + "def preview():\n" + SEED + PREVIEW + LOOP + STEP + "    preview()\n",
    "noise": NET + LOOP + SEED + NOISE,
    "a batch": NET + LOOP + SEED + STEP.replace("net(x) - y", "net[0](x[torch.randperm(16)[:4]])"),
    "a function for all seeds": "import random\ndef seed_all(seed):\n    random.seed(seed)\n"
    "    torch.manual_seed(seed)  #!\n" + NET + LOOP + "    seed_all(3)\n" + STEP,
    "of torch.random": NET + LOOP + SEED.replace("torch.manual", "torch.random.manual") + STEP,
}  # fmt: skip
STATE = NET + "state = torch.get_rng_state()\n"
SET = SEED.replace("torch.manual_seed(7)", "torch.set_rng_state(state)")
WRONG |= {
    "a state": STATE + LOOP + STEP + SET + PREVIEW,
    "a state of torch.random, in a function": STATE + "def preview():\n" + SET.replace("torch.set", "torch.random.set")
    + PREVIEW + LOOP + STEP + "    preview()\n",
}  # fmt: skip
RIGHT = {
    "common random numbers": "mu, scale = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))\n"
    "opt = torch.optim.Adam([mu, scale], 0.05)\nfor _ in range(6):\n    torch.manual_seed(7)\n"
    "    z = mu + scale.exp() * torch.randn(64, 3)\n    loss = ((z - 1) ** 2).sum(1).mean() - scale.sum()\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n",
    "a state, and the one before it": STATE + LOOP + STEP + "    outside = torch.get_rng_state()\n" + SET + PREVIEW
    + "    torch.set_rng_state(outside)\n",
    "a search that begins each run alike": "for rate in range(4):\n    torch.manual_seed(7)\n"
    + "".join(f"    {line}\n" for line in NET.splitlines()) + "    for _ in range(3):\n"
    + STEP.replace("    ", "        "),
    "the same noise twice in a step": NET + LOOP + "    state = torch.get_rng_state()\n    net(x)\n"
    "    torch.set_rng_state(state)\n" + STEP,
    "the same masks for the parts of a batch": NET + LOOP + "    state = torch.get_rng_state()\n    opt.zero_grad()\n"
    "    for part in x.split(4):\n        torch.set_rng_state(state)\n        net(part).square().mean().backward()\n"
    "    opt.step()\n",
    "the same noise for all members": NET + "nets = [nn.Linear(4, 4) for _ in range(4)]\n"
    "opts = [torch.optim.SGD(each.parameters(), lr=0.1) for each in nets]\n" + LOOP
    + "    for net, opt in zip(nets, opts):\n        torch.manual_seed(step)\n"
    + STEP.replace("net(x)", "net(x + torch.randn(16, 4))").replace("    ", "        "),
    "a line search": NET + "opt = torch.optim.LBFGS(net.parameters(), max_iter=4)\nstate = torch.get_rng_state()\n"
    "def closure():\n    torch.set_rng_state(state)\n" + STEP.replace("opt.step()", "return loss") + LOOP
    + "    opt.step(closure)\n",
    "once": NET + "torch.manual_seed(7)\n" + LOOP + STEP,
    "another one each time": NET + LOOP + "    torch.manual_seed(step)\n" + STEP,
    "nothing random": NET + "net.eval()\n" + LOOP + "    torch.manual_seed(7)\n" + STEP,
    "a preview that restores the state": NET + LOOP + STEP + "    state = torch.get_rng_state()\n"
    + SEED + PREVIEW + "    torch.set_rng_state(state)\n",
    "a fork": NET + LOOP + STEP + "    with torch.random.fork_rng():\n        torch.manual_seed(7)\n"
    "        with torch.no_grad():\n            print(net(torch.randn(1, 4)))\n",
    "a generator of its own": NET + LOOP + "    generator = torch.Generator().manual_seed(7)\n"
    + STEP + "    print(torch.randn(2, generator=generator))\n",
    "before runs of several steps": NET + "for _ in range(2):\n    torch.manual_seed(7)\n    for _ in range(3):\n"
    + STEP.replace("    ", "        "),
    "batches by another generator": NET + "net.eval()\ng = torch.Generator()\n" + LOOP + SEED
    + STEP.replace("net(x) - y", "net(x[torch.randint(0, 16, (4,), generator=g)])"),
    "drawn for a print": NET + "net.eval()\n" + LOOP + SEED + "    print(torch.randn(2))\n" + STEP,
}  # fmt: skip
WORDS = "the random numbers begin anew"


@pytest.mark.parametrize("name", WRONG)
def test_a_seed_that_is_set_for_each_step_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_seed_that_no_steps_share_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


DRAW = "    noise = torch.randn(16, 4, generator=generator)\n"
WITH_NOISE = STEP.replace("net(x) - y", "net[3](net[0](x + noise)) - y")
NEW = {
    "in a loop": NET + LOOP + "    generator = torch.Generator().manual_seed(7)  #!\n" + DRAW + WITH_NOISE,
    "in a function": NET + "def draw():\n    generator = torch.Generator().manual_seed(7)  #!\n"
    + DRAW.replace("noise =", "return") + LOOP + "    noise = draw()\n" + WITH_NOISE,
    "in the call": NET + LOOP
    + DRAW.replace("generator)", "torch.Generator().manual_seed(7))").replace("\n", "  #!\n") + WITH_NOISE,
}  # fmt: skip
EPOCHS = """\
def batches():
    g = torch.Generator().manual_seed(7)
    x = torch.randn(16, 4, generator=g)
    return x.split(4)
for epoch in range(5):
    for x in batches():
""" + WITH_NOISE.replace("    ", "        ").replace("x + noise", "x").replace(" - y", " - x")
SHUFFLED = """\
for epoch in range(5):
    order = torch.randperm(16, generator=torch.Generator().manual_seed(7))  #!
    for k in range(4):
""" + WITH_NOISE.replace("    ", "        ").replace("x + noise", "x[order[4 * k : 4 * k + 4]]").replace(" - y", "")
CLOSURE = (
    "opt = torch.optim.LBFGS(net.parameters(), max_iter=4)\ndef closure():\n"
    "    generator = torch.Generator().manual_seed(7)\n"
    + DRAW
    + WITH_NOISE.replace("opt.step()", "return loss")
    + LOOP
    + "    opt.step(closure)\n"
)
ONE = {
    "fixed points of an equation": "net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))\n"
    "opt = torch.optim.Adam(net.parameters())\n" + LOOP + "    generator = torch.Generator().manual_seed(7)\n"
    "    x = torch.rand(32, 1, generator=generator)\n" + STEP.replace("- y", "- torch.sin(6 * x)"),
    "a data set made anew": NET + EPOCHS,
    "a line search": NET + CLOSURE,
    "made once": NET + "generator = torch.Generator().manual_seed(7)\n" + LOOP + DRAW + WITH_NOISE,
    "made in the first round": NET + LOOP + "    if step == 0:\n        generator = torch.Generator().manual_seed(7)\n"
    + DRAW + WITH_NOISE,
    "with other seeds": NET + LOOP + "    generator = torch.Generator().manual_seed(step)\n" + DRAW + WITH_NOISE,
    "for evaluation": NET + LOOP + STEP + "    generator = torch.Generator().manual_seed(7)\n" + DRAW
    + "    with torch.no_grad():\n        net(x + noise)\n",
}  # fmt: skip
NOISER = """\
class Noiser:
    def __init__(self, seed):
        self.seed = seed

    def __call__(self, x):
        generator = torch.Generator().manual_seed(self.seed)  #!
        return torch.randn(x.shape, generator=generator)

noiser = Noiser(3)
"""
NOISED = NET + NOISER + LOOP + "    noise = noiser(x)\n" + WITH_NOISE
OBJECTS = {
    "an attribute": NOISED,
    "two statements": NOISED.replace("manual_seed(self.seed)  #!", "cpu()").replace("Generator().cpu()", "Generator()\n"
                                     "        generator.manual_seed(self.seed)  #!"),
    "one generator that gets the seed again": NOISED.replace("self.seed = seed", "self.seed = seed\n"
        "        self.rng = torch.Generator()").replace("generator = torch.Generator().manual", "self.rng.manual")
    .replace("generator=generator", "generator=self.rng"),
    "a function that makes it": NOISED.replace("generator = torch.Generator().manual_seed(self.seed)  #!",
        "generator = made(self.seed)").replace("class Noiser", "def made(seed):\n    rng = torch.Generator()\n"
        "    rng.manual_seed(seed)  #!\n    return rng\nclass Noiser"),
    "a constant of the program": NET + "SEED = 3\n" + LOOP
    + "    generator = torch.Generator().manual_seed(SEED)  #!\n" + DRAW.replace("16, 4", "x.shape") + WITH_NOISE,
    "two objects": NOISED.replace("range(5)", "range(8)")
    + "with torch.no_grad():\n    print(net(x + Noiser(9)(x)).mean())\n",
}  # fmt: skip
ONE |= {
    "an attribute of the object": NOISED.replace(
        "self.seed = seed", "self.rng = torch.Generator().manual_seed(seed)"
    ).replace("torch.Generator().manual_seed(self.seed)  #!", "self.rng"),
    "a seed that counts": NOISED.replace("  #!", "\n        self.seed += 1"),
    "an object for each step": NOISED.replace("noise = noiser(x)", "noise = Noiser(step)(x)"),
    "a projection that the seed gives again": NOISED.replace("torch.randn(x.shape", "x @ torch.randn(4, 4"),
}
SAME = "draws the same random numbers in each of"


@pytest.mark.parametrize("name", NEW)
def test_a_generator_that_begins_anew_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, NEW[name]) if SAME in each.text)
    assert "5 backward passes that use them: `torch.Generator().manual_seed(7)` begins anew each time" in found.text
    assert found.labels[0].span.line == marked(NEW[name])


def test_an_order_of_the_samples_that_begins_anew_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, NET + SHUFFLED) if SAME in each.text)
    assert found.labels[0].span.line == marked(NET + SHUFFLED)


@pytest.mark.parametrize("name", OBJECTS)
def test_a_seed_of_an_object_is_named(tmp_path: Path, name: str) -> None:
    words = "draws for 8 backward passes with no more than 2 seeds" if name == "two objects" else SAME
    (found,) = (each for each in sentences(tmp_path, OBJECTS[name]) if words in each.text)
    assert found.labels[0].span.line == marked(OBJECTS[name])


@pytest.mark.parametrize("name", ONE)
def test_other_generators_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, ONE[name]) if "begins anew" in each.text] == []
