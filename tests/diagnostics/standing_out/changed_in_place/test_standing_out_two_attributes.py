"""Checks the sentence about two attributes, or two variables of a line, that are one tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "are one tensor: "
TRAIN = """
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""


def net(init: str, forward: str, result: str = "x - self.mean") -> str:
    lines = "\n".join(f"        {line}" for line in init.splitlines())
    more = "\n".join(f"            {line}" for line in forward.splitlines())
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.fc = nn.Linear(4, 1)\n{lines}\n    def forward(self, x):\n"
        f"        with torch.no_grad():\n{more}\n        return self.fc({result})\n"
    )


BOTH = "self.mean.lerp_(x.mean(0), 0.1)  #!\nself.square.lerp_(x.square().mean(0), 0.1)"
WRONG = {
    "two buffers": (
        net("start = torch.zeros(4)\nself.register_buffer('mean', start)\nself.register_buffer('square', start)", BOTH)
        + TRAIN,
        "`model.mean` and `model.square` are one tensor: `self.mean.lerp_(x.mean(0), 0.1)` and",
    ),
    "through a view": (
        net("start = torch.zeros(4)\nself.mean, self.square = start, start.view(4)", BOTH) + TRAIN,
        "both change it in place",
    ),
    "entries of a list": (
        net("self.seen = [torch.zeros(4)] * 2", "self.seen[0] += x.mean(0)  #!\nself.seen[1] += x.square().mean(0)",
            "x - self.seen[0]") + TRAIN,
        "`model.seen[0]` and `model.seen[1]` are one tensor",
    ),
    "one is changed, the other is read": (
        net("start = torch.zeros(4)\nself.register_buffer('first', start)\nself.register_buffer('mean', start)",
            "self.mean += 0.1 * x.mean(0)  #!", "x - self.first") + TRAIN,
        "`model.mean` and `model.first` are one tensor: `self.mean += ...` changes it in place, and `x - self.first` r",
    ),
    "entries of a state": (
        net("pass", "pass", "x") + "class Own(torch.optim.Optimizer):\n    def __init__(self, params):\n"
        "        super().__init__(params, {'lr': 0.1})\n    @torch.no_grad()\n    def step(self):\n"
        "        for p in self.param_groups[0]['params']:\n            state = self.state[p]\n"
        "            if not state:\n                state['a'] = state['b'] = torch.zeros_like(p)\n"
        "            state['a'].lerp_(p.grad, 0.1)  #!\n"
        "            torch.maximum(state['a'], state['b'], out=state['b'])\n"
        "            p.sub_(0.1 * state['b'])\n" + TRAIN.replace("torch.optim.SGD(model.parameters(), lr=0.1)", (
            "Own(model.parameters())")),
        "`state['a']` and `state['b']` are one tensor: `state['a'].lerp_(p.grad, 0.1)` and `torch.maximum(...)`",
    ),
    "two variables": (
        net("pass", "pass", "x") + "total = count = torch.zeros(())\n" + TRAIN
        + "    total += model(torch.ones(1, 4)).detach().squeeze()  #!\n    count += 1\n",
        "`total` and `count` are one tensor",
    ),
    "two variables of a function": (
        net("pass", "pass", "x") + TRAIN + "def main():\n    hidden, cell = [torch.zeros(4)] * 2\n"
        "    hidden.add_(1)  #!\n    cell.mul_(3)\nmain()\n",
        "`hidden` and `cell` are one tensor",
    ),
}  # fmt: skip
RIGHT = {
    "two tensors": net("self.mean, self.square = torch.zeros(4), torch.zeros(4)", BOTH.replace("  #!", "")) + TRAIN,
    "a copy": net("start = torch.zeros(4)\nself.mean, self.square = start, start.clone()", BOTH.replace("  #!", ""))
    + TRAIN,
    "an argument of a method": net(
        "start = torch.zeros(4)\nself.mean, self.square = start, start",
        "self.mean.lerp_(x.mean(0), 0.1)\nself.square = x.square().mean(0)\nself.mean.add_(self.square)") + TRAIN,
    "a name that is set before it is read": net(
        "self.mean = self.square = torch.zeros(4)",
        "self.square = x.square().mean(0)\nself.mean.lerp_(x.mean(0), 0.1)", "x - self.square") + TRAIN,
    "one value of two names": net("self.mean = self.level = torch.zeros(4)", "self.mean.lerp_(x.mean(0), 0.1)",
                                  "x - self.level") + TRAIN,
    "a start that new tensors replace": net(
        "self.mean = self.square = torch.zeros(4)", "self.mean = x.mean(0)\nself.square = x.square().mean(0)") + TRAIN,
    "tied weights": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.fc, self.out = nn.Linear(4, 4), nn.Linear(4, 4)\n        self.out.weight = self.fc.weight\n"
    "        nn.init.normal_(self.fc.weight)\n        nn.init.normal_(self.out.weight)\n"
    "    def forward(self, x):\n        return self.out(self.fc(x))\n" + TRAIN,
    "an old name": net("self.register_buffer('mean', torch.zeros(4))\nself.running = self.mean",
                       "self.running += 0.1 * x.mean(0)") + TRAIN,
    "two buffers in turn": net("self.mean, self.next = torch.zeros(4), torch.zeros(4)",
                               "self.next.copy_(x.mean(0))\nself.mean, self.next = self.next, self.mean") + TRAIN,
    "a flat view": net("start = torch.zeros(2, 2)\nself.mean, self.flat = start, start.view(4)",
                       "self.flat += 0.1 * x.mean(0)\nself.mean.mul_(2)", "x - self.flat") + TRAIN,
    "one that nothing changes": net("self.mean = self.square = torch.zeros(4)", "y = self.square + 1") + TRAIN,
    "two variables, one of them new": net("pass", "pass", "x") + "total = best = torch.zeros(())\n" + TRAIN
    + "    total = total + 1\n    best = torch.maximum(best, total)\n",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_two_names_of_one_tensor(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_names(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
