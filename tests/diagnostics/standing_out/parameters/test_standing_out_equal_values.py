"""Checks the sentences about equal members and rows, updates that are rounded away, and new frozen parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

DATA = "import copy\nx, y = torch.randn(32, 4), torch.randn(32, 1)\n"
MAKE = "make = lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\n"
STEP = "opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
WORDS = ("are equal in every bit", "rounded away", "frozen before a step")
ENSEMBLE = (
    "opt = torch.optim.Adam(members.parameters(), lr=0.01)\nfor _ in range(6):\n"
    "    loss = sum((m(x) - y).square().mean() for m in members)\n    " + STEP
)
LOSS = "    loss = (model(x) - y).square().mean()\n    "
PLAIN = "opt = torch.optim.Adam(model.parameters(), lr=0.01)\nfor _ in range(6):\n" + LOSS
HALF = "model = make().to(torch.bfloat16)\nx, y = x.bfloat16(), y.bfloat16()\n"
LORA = """\
class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(8, 2))
    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T
"""
OWN = (
    "x, y = torch.randn(32, 4).bfloat16(), torch.randn(32, 1).bfloat16()\n"
    "model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).bfloat16()\n"
    "parameters = list(model.parameters())\nfor _ in range(20):\n    loss = (model(x) - y).square().mean()\n"
    "    model.zero_grad()\n    loss.backward()\n    with torch.no_grad():\n        "
)
EACH = OWN + "for p in parameters: "
# the parameters are gone at the end
KEPT = "have the value that they had at the first of 16 backward passes in half precision, although"
WRONG = {
    "small updates by a line": (EACH + "p -= 1e-4 * p.grad  #!\n", KEPT),
    "small updates of data": (EACH + "p.data = p.data - 1e-4 * p.grad  #!\n", KEPT),
    "small updates of an alias": (EACH + "p.data.add_(p.grad.add(p, alpha=0.01), alpha=-1e-4)  #!\n", KEPT),
    "small updates of all": (
        OWN + "torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-1e-4)  #!\n", KEPT),
    "small updates computed in float32": (EACH + "p.copy_(p.float() - 1e-4 * p.grad.float())  #!\n", KEPT),
    "small updates with an average": (
        OWN.replace("for _", "means = [torch.zeros_like(p) for p in parameters]\nfor _", 1)
        + "for p, m in zip(parameters, means): m.mul_(0.9).add_(p.grad, alpha=0.1); p.add_(m, alpha=-1e-3)  #!\n",
        KEPT,
    ),
    "copies of one model": (
        DATA + MAKE + "one = make()\nmembers = nn.ModuleList(copy.deepcopy(one) for _ in range(3))  #!\n" + ENSEMBLE,
        "`members[0]` and 2 others of `members` are equal in every bit after 6 steps have moved each of them",
    ),
    "heads with one seed": (
        DATA + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        heads = []\n"
        "        for _ in range(2):\n            torch.manual_seed(1)\n            heads.append(nn.Linear(4, 1))  #!\n"
        "        self.heads = nn.ModuleList(heads)\n"
        "    def forward(self, x):\n        return sum(h(x) for h in self.heads)\nmodel = Net()\n" + PLAIN + STEP,
        "`model.heads[0]` and `model.heads[1]` are equal in every bit after 6 steps",
    ),
    "twins": (
        DATA + MAKE + "q1 = make()\nq2 = copy.deepcopy(q1)  #!\n"
        "opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=0.01)\nfor _ in range(6):\n"
        "    loss = (q1(x) - y).square().mean() + (q2(x) - y).square().mean()\n    " + STEP,
        "`q1` and `q2` are equal in every bit after 6 steps have moved each of them",
    ),
    "constant weights": (
        DATA + "model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))  #!\n"
        "for p in model.parameters():\n    nn.init.constant_(p, 0.1)\n" + PLAIN + STEP,
        "all rows of `model[0].weight` are equal in every bit after 4 steps",
    ),
    "small updates of bfloat16": (
        DATA + MAKE + HALF + "opt = torch.optim.SGD(model.parameters(), lr=1e-4)  #!\nfor _ in range(20):\n"
        "    loss = (model(x) - y).square().mean()\n    " + STEP,
        "have the value that they had before the first of 20 steps in half precision, although",
    ),
    "small updates after steps of float32": (
        DATA + MAKE + "model = make()\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(4):\n"
        "    loss = (model(x) - y).square().mean()\n    " + STEP + "model, x, y = model.bfloat16(), x.bfloat16(), "
        "y.bfloat16()\nopt = torch.optim.SGD(model.parameters(), lr=1e-4)  #!\nfor _ in range(20):\n"
        "    loss = (model(x) - y).square().mean()\n    " + STEP,
        "have the value that they had before the first of 20 steps in half precision, although",
    ),
    "in a function": (
        DATA + MAKE + "def train():\n    one = make()\n    members = nn.ModuleList(map(copy.deepcopy, [one] * 3))  #!\n"
        + "".join(f"    {line}\n" for line in ENSEMBLE.splitlines()) + "train()\n",
        "`members[0]` and 2 others of `members` are equal in every bit after 4 steps have moved each of them",
    ),
    "new adapters": (
        DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP + "model[0] = Adapted(model[0])\n"
        "for p in model.parameters():\n    p.requires_grad = False  #!\nmodel[2].requires_grad_(True)\n"
        + PLAIN.replace("model.p", "model[2].p") + STEP,
        "are new, and frozen before a step trains them, by the line that freezes `model[0].weight`",
    ),
    "new adapters that an optimizer has": (
        DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP + "model[0] = Adapted(model[0])\n"
        "model[0].requires_grad_(False)  #!\n" + PLAIN + STEP,
        "are new, and frozen before a step trains them, by the line that freezes `model[0].",
    ),
}  # fmt: skip
RIGHT = {
    "a line with masters in float32":
    OWN.replace("for _", "masters = [p.detach().float() for p in parameters]\nfor _", 1)
    + "for p, m in zip(parameters, masters): m -= 1e-4 * p.grad.float(); p.copy_(m)\n",
    "a second sum of what is lost": OWN.replace("for _", "lost = [torch.zeros_like(p) for p in parameters]\nfor _", 1)
    + "for p, rest in zip(parameters, lost):\n            step = rest - 1e-4 * p.grad\n            before = p.clone()\n"
    "            p += step\n            rest.copy_(step - (p - before))\n",
    "some elements alone": OWN.replace("for _", "masks = [torch.rand_like(p) < 0.1 for p in parameters]\nfor _", 1)
    + "for p, mask in zip(parameters, masks): p -= p.grad * mask\n",
    "a mask after the update": OWN.replace("for _", (
        "masks = [(torch.rand_like(p) < 0.1).bfloat16() for p in parameters]\nfor _"), 1)
    + "for p, mask in zip(parameters, masks): p -= 0.1 * p.grad; p *= mask\n",
    "first values put back": OWN.replace("for _", "first = [p.clone() for p in parameters]\nfor _", 1)
    + "for p in parameters: p -= 0.1 * p.grad\nfor p, w in zip(parameters, first): p.data.copy_(w)\n",
    "steps there and back that bfloat16 has exactly":
    OWN.replace("for _", "for p in parameters: p.data = (torch.randint(-4, 5, p.shape) / 4).bfloat16()\nfor _", 1)
    + "for p in parameters: p -= (2 ** -5) * p.grad.sign()\n",
    "large updates by a line": EACH + "p -= 0.5 * p.grad\n",
    "a measure of sharpness": EACH + "p.add_(p.grad, alpha=1e-2)\n    (model(x) - y).square().mean()\n"
    "    with torch.no_grad():\n        for p in parameters: p.sub_(p.grad, alpha=1e-2)\n",
    "twins with batches of their own": DATA + MAKE + "q1 = make()\nq2 = copy.deepcopy(q1)\n"
    "opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=0.01)\nfor _ in range(6):\n"
    "    loss = (q1(x) - y).square().mean() + (q2(x[:8]) - y[:8]).square().mean()\n    " + STEP,
    "replicas that average their gradients": DATA + MAKE + "q1 = make()\nq2 = copy.deepcopy(q1)\n"
    "opts = [torch.optim.SGD(q.parameters(), lr=0.1) for q in (q1, q2)]\nfor _ in range(6):\n"
    "    for q, opt, r in zip((q1, q2), opts, (slice(0, 16), slice(16, 32))):\n        opt.zero_grad()\n"
    "        (q(x[r]) - y[r]).square().mean().backward()\n    for ps in zip(q1.parameters(), q2.parameters()):\n"
    "        mean = torch.stack([p.grad for p in ps]).mean(0)\n        for p in ps: p.grad.copy_(mean)\n"
    "    for opt in opts: opt.step()\n",
    "two runs that are compared": DATA + MAKE + "net_a = make()\nnet_b = copy.deepcopy(net_a)\n"
    "opts = [torch.optim.Adam(n.parameters(), foreach=f) for n, f in ((net_a, True), (net_b, False))]\n"
    "for _ in range(6):\n    for net, opt in zip((net_a, net_b), opts):\n        opt.zero_grad()\n"
    "        (net(x) - y).square().mean().backward()\n        opt.step()\n"
    "for p, q in zip(net_a.parameters(), net_b.parameters()): torch.testing.assert_close(p, q)\n",
    "members of their own": DATA + MAKE + "members = nn.ModuleList(make() for _ in range(3))\n" + ENSEMBLE,
    "copies with batches of their own": DATA + MAKE + "first = make()\n"
    "members = nn.ModuleList(copy.deepcopy(first) for _ in range(3))\n"
    + ENSEMBLE.replace("m(x) - y", "m(x[r := torch.randperm(32)[:16]]) - y[r]"),
    "one member, twice": DATA + MAKE + "first = make()\nmembers = nn.ModuleList([first, first])\n" + ENSEMBLE,
    "two copies to compare": DATA + MAKE + "one = make()\nother = copy.deepcopy(one)\n"
    "members = nn.ModuleDict(dict(one=one, other=other))\n" + ENSEMBLE.replace("in members)", "in members.values())"),
    "biases that begin at zero": DATA + "model = nn.Sequential(nn.LSTM(4, 8, batch_first=True))\n"
    "nn.init.zeros_(model[0].bias_ih_l0); nn.init.zeros_(model[0].bias_hh_l0)\n"
    "opt = torch.optim.Adam(model.parameters())\nfor _ in range(5):\n"
    "    loss = model(x[:, None])[0].square().mean()\n    " + STEP,
    "a network of its own that stays": DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP + "prior = make()\n"
    "for net in (model, prior):\n    net.requires_grad_(False)\nhead = nn.Linear(1, 1)\n"
    + PLAIN.replace("model.p", "head.p").replace("model(x)", "head(model(x) + prior(x))") + STEP,
    "adapters that are loaded": DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP
    + "model[0] = Adapted(model[0])\n"
    "model[0].load_state_dict({'a': torch.randn(2, 4), 'b': torch.randn(8, 2)}, strict=False)\n"
    "model[0].requires_grad_(False)\n" + PLAIN + STEP,
    "one factor of an update alone": DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP
    + "model[0] = Adapted(model[0])\nfor name, p in model.named_parameters():\n    p.requires_grad = name == '0.b'\n"
    + PLAIN + STEP,
    "a random projection after a training": DATA + MAKE + "model = make()\n" + PLAIN + STEP
    + "model[0] = nn.Linear(4, 8)\nnn.init.normal_(model[0].weight, std=0.3)\nnn.init.normal_(model[0].bias)\n"
    "model.requires_grad_(False)\nmodel[2] = nn.Linear(8, 1)\n" + PLAIN + STEP,
    "a scale that is computed": DATA + MAKE + "model = make()\n" + PLAIN + STEP
    + "model[1] = nn.PReLU(8)\nmodel[1].weight.data.fill_(1 / float(model[0](x).std()))\n"
    "model.requires_grad_(False)\nmodel[2].requires_grad_(True)\n" + PLAIN + STEP,
    "zeros in the last layer": DATA + MAKE + "model = make()\nnn.init.zeros_(model[2].weight)\n" + PLAIN + STEP,
    "large updates of bfloat16": DATA + MAKE + HALF + "opt = torch.optim.SGD(model.parameters(), lr=0.5)\n"
    "for _ in range(20):\n    loss = (model(x) - y).square().mean()\n    " + STEP,
    "masters in float32": DATA + MAKE + "model = make()\nopt = torch.optim.SGD(model.parameters(), lr=1e-4)\n"
    "for _ in range(20):\n    half = copy.deepcopy(model).bfloat16()\n"
    "    loss = (torch.func.functional_call(model, {k: v.bfloat16() for k, v in model.named_parameters()}, "
    "(x.bfloat16(),)) - y.bfloat16()).square().mean()\n    " + STEP,
    "adapters after the freeze": DATA + MAKE + LORA + "model = make()\n" + PLAIN + STEP
    + "for p in model.parameters():\n    p.requires_grad = False\nmodel[0] = Adapted(model[0])\n" + PLAIN + STEP,
    "a random projection": DATA + MAKE + "model = make()\nfor p in model[0].parameters():\n"
    "    p.requires_grad = False\n" + PLAIN + STEP,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_equal_values_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert marked(body) in {label.span.line for label in found.labels}


@pytest.mark.parametrize("name", RIGHT)
def test_usual_values_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
