"""Checks the sentence about statistics that a module keeps as plain attributes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Scaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(3)  #!
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.out(x - self.mean)

net = Scaler()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    loss = net(torch.randn(8, 3) + 4).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
other = Scaler()
other.load_state_dict(net.state_dict())
other.eval()
with torch.no_grad():
    print(other(torch.randn(8, 3) + 4).mean())
"""
NOTE = "    def note(self, x):\n        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)\n\n    def forward"
EVALUATED = NET.replace("            self.mean =", "            with torch.no_grad(): self.mean =").replace(
    "return self.out(x - self.mean)",
    "    mean = x.mean(0)\n        else:\n            mean = self.mean\n        return self.out(x - mean)").replace(
    "other = Scaler()", "net.eval()\nwith torch.no_grad(): net(torch.randn(8, 3) + 4)\nother = Scaler()")  # fmt: skip
WRONG = {
    "in forward": NET,
    "in a method": NET.replace("self.mean = 0.9 * self.mean + 0.1 * x.mean(0)", "self.note(x)").replace(
        "    def forward", NOTE),
    "read in evaluation only": EVALUATED,
    "of the second layer": EVALUATED.replace("Scaler()\n", "nn.Sequential(\n    Scaler(), Scaler())\n")
    .replace("nn.Linear(3, 1)", "nn.Linear(3, 3)"),
}  # fmt: skip
RIGHT = {
    "begun anew each step": NET.replace("    opt.step()\n", "    opt.step()\n    net.mean.zero_()\n"),
    "measured again after the load": EVALUATED.replace("other.eval()\n", "other(torch.randn(8, 3))\nother.eval()\n"),
    "a mask": NET.replace("0.9 * self.mean + 0.1 * x.mean(0)", "torch.ones(3) * (torch.rand(3) > 0.1)"),
    "a recurrent state": NET.replace(
        "0.9 * self.mean + 0.1 * x.mean(0)", "torch.tanh(self.mean @ torch.eye(3) + x.mean(0))"),
    "given to the constructor": NET.replace("def __init__(self)", "def __init__(self, mean=None)").replace(
        "torch.zeros(3)  #!", "torch.zeros(3) if mean is None else mean.clone()").replace(
        "other = Scaler()", "other = Scaler(net.mean)"),
    "another object is loaded": NET.replace("other = Scaler()", "other = Scaler()\nmore = nn.Linear(3, 1)").replace(
        "other.load_state_dict(net.state_dict())", "more.load_state_dict(net.out.state_dict())"),
    "a buffer": NET.replace("self.mean = torch.zeros(3)", 'self.register_buffer("mean", torch.zeros(3))'),
    "copied as well": NET.replace("other.eval()", "other.mean = net.mean\nother.eval()"),
    "written as well": NET.replace("other.eval()", "other.mean.copy_(net.mean)\nother.eval()"),
    "a state": NET.replace("if self.training:", "if True:"),
    "an extra state": NET.replace("    def forward", (
        "    def get_extra_state(self):\n        return self.mean\n\n"
        "    def set_extra_state(self, state):\n        self.mean = state.clone()\n\n    def forward")),
    "not loaded": NET.replace("other.load_state_dict(net.state_dict())\n", ""),
    "the same module": NET.replace("other = Scaler()", "other = net"),
    "trained on": NET.replace("other.eval()\n", "").replace("with torch.no_grad():", "if True:"),
    "a constant": NET.replace("            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)\n", "            pass\n"),
}  # fmt: skip
IN_PLACE = EVALUATED.replace(
    "self.mean = 0.9 * self.mean + 0.1 * x.mean(0)", "self.mean.lerp_(x.mean(0), 0.1)"
).replace("net.eval()\nwith torch.no_grad(): net(torch.randn(8, 3) + 4)\n", "")
CHANGED_IN_PLACE = {
    "lerp_": IN_PLACE,
    "mul_ and add_": IN_PLACE.replace("lerp_(x.mean(0), 0.1)", "mul_(0.9).add_(x.mean(0), alpha=0.1)"),
    "evaluated before": EVALUATED.replace(
        "self.mean = 0.9 * self.mean + 0.1 * x.mean(0)", "self.mean.lerp_(x.mean(0), 0.1)"),
}  # fmt: skip
RIGHT |= {
    "a buffer in place": IN_PLACE.replace("self.mean = torch.zeros(3)", 'self.register_buffer("mean", torch.zeros(3))'),
    "only shown": IN_PLACE.replace("mean = self.mean", "mean = x.mean(0)")
    + "print(other.mean.sum(), net.mean.norm())\n",
    "a loaded copy": IN_PLACE.replace("other.eval()", "other.mean.copy_(net.mean)\nother.eval()"),
    "trained again before it is read": IN_PLACE.replace("other.eval()\n", "other(torch.randn(8, 3))\nother.eval()\n"),
    "the first object is evaluated": IN_PLACE.replace("other.eval()", "net.eval()").replace(
        "print(other(", "print(net("
    ),
}
WORDS = "it is no buffer"


@pytest.mark.parametrize("name", CHANGED_IN_PLACE)
def test_an_attribute_that_is_changed_in_place_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, CHANGED_IN_PLACE[name]) if WORDS in each.text)
    assert "uses `self.mean` as the constructor makes it" in found.text
    assert found.labels[0].span.line == marked(CHANGED_IN_PLACE[name])


@pytest.mark.parametrize("name", WRONG)
def test_an_attribute_that_is_not_loaded_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    used = "`x - self.mean`" if "x - self.mean" in WRONG[name] else "`x - mean`"
    assert found.text.startswith(f"after `load_state_dict()`, {used} uses `self.mean` as the constructor")
    assert "`0.9 * self.mean + 0.1 * x.mean(0)` sets it in training" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_attributes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


FLOW = """\
class Shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.order = torch.randperm(4)  #!

    def forward(self, x):
        return x[:, self.order]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.out = Shuffle(), nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.first(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    loss = net(torch.randn(8, 4) + 4).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
other = Net()
other.load_state_dict(net.state_dict())
with torch.no_grad():
    print(other(torch.randn(8, 4) + 4).mean())
"""
LIST = FLOW.replace("self.order = torch.randperm(4)", "self.orders = [torch.randperm(4) for _ in range(2)]").replace(
    "        return x[:, self.order]",
    "        for order in self.orders:\n            x = x[:, order]\n        return x",
)
RESUMED = FLOW.replace("other = Net()", "import io\nfile = io.BytesIO()\ntorch.save(net.state_dict(), file)\n"
    "file.seek(0)\nother = Net()").replace("other.load_state_dict(net.state_dict())", (
    "other.load_state_dict(torch.load(file))")).replace(
    "with torch.no_grad():\n    print(other(torch.randn(8, 4) + 4).mean())",
    "torch.manual_seed(1)\nother(torch.randn(8, 4)).square().mean().backward()")  # fmt: skip
PROJECTED = RESUMED.replace("torch.randperm(4)", "2 * torch.randn(4, 4)").replace(
    "x[:, self.order]", "torch.cos(x @ self.order)"
)
NUMPY = FLOW.replace("torch.randperm(4)", "torch.from_numpy(np.random.permutation(4))").replace(
    "class Shuffle", "import random\nimport numpy as np\nnp.random.seed(0)\nclass Shuffle"
)
DRAWN = {
    "a list of permutations": LIST,
    "permutations that are appended": LIST.replace(
        "self.orders = [torch.randperm(4) for _ in range(2)]  #!",
        "self.orders = []\n        for _ in range(2):\n            self.orders.append(torch.randperm(4))  #!"),
    "a permutation in a resumed training": RESUMED,
    "a projection in a resumed training": PROJECTED,
    "a permutation": FLOW,
    "a permutation of NumPy": NUMPY,
    "a list of permutations of NumPy": NUMPY.replace(
        "self.order = torch.from_numpy(np.random.permutation(4))",
        "self.orders = [torch.from_numpy(np.random.permutation(4)) for _ in range(2)]").replace(
        "return x[:, self.order]", "return x[:, self.orders[0]][:, self.orders[1]]"),
    "a dict": LIST.replace("[torch.randperm(4) for _ in range(2)]", "{k: torch.randperm(4) for k in 'ab'}").replace(
        "in self.orders:", "in self.orders.values():"),
    "a shuffled list": NUMPY.replace("self.order = torch.from_numpy(np.random.permutation(4))", (
        "order = [0, 1, 2, 3]\n        random.shuffle(order)\n        self.order = torch.tensor(order)")),
    "one generator of NumPy": NUMPY.replace("np.random.seed(0)", "rng = np.random.default_rng(0)").replace(
        "np.random.permutation", "rng.permutation"),
    "features": FLOW.replace("torch.randperm(4)", "2 * torch.randn(4, 3)").replace(
        "x[:, self.order]", "torch.cos(x @ self.order)").replace("Linear(4", "Linear(3"),
}  # fmt: skip
SETS = (
    FLOW.replace("self.out(self.first(x))", "self.out(self.each(self.first(x)).relu().sum(1))")
    .replace("nn.Linear(4, 1)", "nn.Linear(6, 1)\n        self.each = nn.Linear(3, 6)")
    .replace("randn(8, 4)", "randn(8, 4, 3)")
)
DRAWN["a sum over other elements"] = SETS.replace("sum(1)", "sum(2)").replace("Linear(6", "Linear(4")
NOT_DRAWN = {
    "an order of the elements of a set": SETS,
    "an order of NumPy, and a maximum": NUMPY.replace(
        "self.out(self.first(x))", ("self.out(self.first(x).tanh().amax(1))")
    )
    .replace("Linear(4", "Linear(3")
    .replace("(8, 4)", "(8, 4, 3)"),
    "a seed of NumPy before each object": NUMPY.replace("other = Net", "np.random.seed(0)\nother = Net"),
    "a function that sets the seed of NumPy": NUMPY.replace(
        "np.random.seed(0)", "def fix(): np.random.seed(0)\nfix()"
    ).replace("other = Net", "fix()\nother = Net"),
    "a generator of NumPy with a seed": NUMPY.replace("np.random.permutation", "np.random.default_rng(0).permutation"),
    "numbers that NumPy does not draw": NUMPY.replace("np.random.permutation(4)", "np.arange(4)[::-1].copy()"),
    "a list that is copied as well": LIST.replace(
        "with torch.no", "other.first.orders = net.first.orders\nwith torch.no"
    ),
    "a noise in a resumed training": RESUMED.replace("torch.randperm(4)", "torch.rand(4)").replace(
        "x[:, self.order]", "x + self.order"
    ),
    "a part in a resumed training": RESUMED.replace("torch.randperm(4)", "torch.randperm(4)[:2]").replace(
        "Linear(4, 1)", "Linear(2, 1)"
    ),
    "two models side by side": RESUMED + "net(torch.randn(8, 4))\n",
    "saved before the training": PROJECTED.replace(
        "net = Net()\n",
        "net = Net()\nimport io\nfile = io.BytesIO()\ntorch.save(net.state_dict(), file)\nfile.seek(0)\n",
    )
    .replace("other = Net()", "other = Net()#")
    .replace("import io\nfile = io.BytesIO()\ntorch.save(net.state_dict(), file)\nfile.seek(0)\nother", "other"),
    "a buffer": FLOW.replace("self.order = torch.randperm(4)", 'self.register_buffer("order", torch.randperm(4))'),
    "a generator": FLOW.replace("randperm(4)", "randperm(4, generator=torch.Generator().manual_seed(1))"),
    "a seed before each object": FLOW.replace("other = Net", "torch.manual_seed(0)\nother = Net"),
    "copied as well": FLOW.replace("with torch.no", "other.first.order = net.first.order\nwith torch.no"),
    "numbers of a generator": FLOW.replace(
        "torch.randperm(4)",
        "torch.rand(4, generator=torch.Generator().manual_seed(1))\n        self.order = self.order.argsort() + 0",
    ),
    "written before the load": FLOW.replace("other.load", "other.first.order.copy_(net.first.order)\nother.load"),
    "no module": FLOW.replace("Shuffle(nn.Module)", "Shuffle")
    .replace("class Shuffle:", "class Shuffle:\n    __call__ = lambda self, x: self.forward(x)\n")
    .replace("        super().__init__()\n        self.order", "        self.order"),
    "trained on": FLOW.replace(
        "with torch.no_grad():\n    print(other(torch.randn(8, 4) + 4).mean())",
        "other(torch.randn(8, 4)).square().mean().backward()",
    ),
    "compared": FLOW.replace(
        "with torch.no", "print(torch.equal(net.first.order, other.first.order))\nwith torch.no"
    ).replace("return x[:, self.order]", "return x"),
    "a constant": FLOW.replace("torch.randperm(4)", "torch.arange(3, -1, -1)"),
    "not loaded": FLOW.replace("other.load_state_dict(net.state_dict())\n", ""),
    "the same module": FLOW.replace("other = Net()", "other = net"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_an_attribute_that_is_drawn_anew_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, DRAWN[name]) if WORDS in each.text)
    assert "uses the `self.order" in found.text
    assert "` that the constructor has drawn for this object" in found.text
    assert found.labels[0].span.line == marked(DRAWN[name])


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_other_drawn_attributes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NOT_DRAWN[name]) if WORDS in each.text] == []


ON = """\
import io

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.prior = torch.ones(3) / 3  #!

    def loss(self, x, y):
        with torch.no_grad():
            self.prior.mul_(0.9).add_(nn.functional.one_hot(y, 3).float().mean(0), alpha=0.1)
        return nn.functional.cross_entropy(self.out(x) + self.prior.log(), y)

def train(net, opt):
    for _ in range(5):
        opt.zero_grad()
        net.loss(torch.randn(16, 4), torch.randint(0, 3, (16,))).backward()
        opt.step()

def new():
    net = Net()
    return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

net, opt = new()
train(net, opt)
file = io.BytesIO()
torch.save((net.state_dict(), opt.state_dict()), file)
file.seek(0)
state = torch.load(file)
other, more = new()
other.load_state_dict(state[0])
more.load_state_dict(state[1])
train(other, more)
"""
QUEUE = (
    ON.replace("self.prior = torch.ones(3) / 3", "self.queue = torch.randn(32, 3)")
    .replace(
        "self.prior.mul_(0.9).add_(nn.functional.one_hot(y, 3).float().mean(0), alpha=0.1)",
        "keys = self.queue.clone()\n            self.queue[:16] = self.out(x)",
    )
    .replace("cross_entropy(self.out(x) + self.prior.log(), y)", "cross_entropy(self.out(x) @ keys.T, y)")
)
RESTARTED = {
    "a prior": ON,
    "a buffer that is not persistent": ON.replace("self.prior = torch.ones(3) / 3  #!", (
        'self.register_buffer("prior", torch.ones(3) / 3, persistent=False)  #!')),
    "a queue": QUEUE,
    "assigned": ON.replace("self.prior.mul_(0.9).add_(", "self.prior = self.prior.lerp(").replace(
        "mean(0), alpha=", "mean(0), "),
}  # fmt: skip
GOES_ON = {
    "a buffer": ON.replace("self.prior = torch.ones(3) / 3", 'self.register_buffer("prior", torch.ones(3) / 3)'),
    "copied as well": ON.replace("train(other", "other.prior.copy_(net.prior)\ntrain(other"),
    "assigned as well": ON.replace("train(other", "other.prior = net.prior\ntrain(other"),
    "a new optimizer": ON.replace("more.load_state_dict(state[1])\n", ""),
    "begun anew each epoch": ON.replace("    for _ in range(5):", (
        "    net.begin()\n    for _ in range(5):")).replace(
        "    def loss(", "    def begin(self):\n        self.prior = torch.ones(3) / 3\n\n    def loss("),
    "a mean that is only shown": ON.replace(" + self.prior.log()", ""),
    "a counter of one step": ON.replace("        opt.step()\n", "        opt.step()\n        net.prior.fill_(0.1)\n"),
    "a memory that is replaced as a whole": QUEUE.replace("self.queue[:16] = self.out(x)", (
        "self.queue[:] = self.out(torch.cat((x, x)))")),
    "a rollout that is filled before each update": QUEUE.replace(
        "            self.queue[:16] = self.out(x)\n", "").replace("        opt.zero_grad()\n", (
        "        for n in range(32):\n            net.queue[n] = torch.randn(3)\n        opt.zero_grad()\n")),
    "the filled rows of a memory": QUEUE.replace("self.queue.clone()", "self.queue[:16].clone()"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESTARTED)
def test_an_attribute_that_begins_anew_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, RESTARTED[name]) if "begins anew" in each.text)
    assert "of `SGD`, the training goes on, but `self." in found.text
    assert f"has changed the one before {250 if 'range(250)' in RESTARTED[name] else 5} times" in found.text
    assert found.labels[0].span.line == marked(RESTARTED[name])


@pytest.mark.parametrize("name", GOES_ON)
def test_attributes_that_go_on_or_begin_on_purpose_are_left_alone(tmp_path: Path, name: str) -> None:
    found = [each.text for each in sentences(tmp_path, GOES_ON[name])]
    assert [each for each in found if "begins anew" in each or "no buffer" in each] == []
