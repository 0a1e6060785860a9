"""Checks the sentences about statements that do nothing, as `net.eval` without parentheses."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = "net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Linear(4, 1))\n"
TRAIN = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor i in range(4):\n    opt.zero_grad()\n"
STEP = "    net(torch.randn(8, 4)).square().mean().backward()\n    opt.step()\n"
WORDS = (
    "names a method", "no `with` enters it", "compares, and drops", "no line of the program reads",
    "assigns a new value",
)  # fmt: skip
ADDED = (
    "    loss = net(torch.randn(8, 4)).square().mean()\n    loss += 0.1 * net[0].weight.abs().mean()\n"
    "    loss.backward()\n    opt.step()\n"
)

WRONG = {
    "eval": (NET + TRAIN + STEP + "net.eval  #!\n", "`net.eval` names a method and does not call it"),
    "train in a function": (
        NET + "def evaluate():\n    net.eval()\n    net.train  #!\n" + TRAIN + STEP + "    evaluate()\n",
        "`net.train` names a method and does not call it",
    ),
    "a context that nothing enters": (
        NET + TRAIN + STEP + "    torch.no_grad()  #!\n    net(torch.randn(2, 4))\n",
        "`torch.no_grad()` makes a context, and no `with` enters it",
    ),
    "a compared flag": (
        NET + "for p in net[0].parameters():\n    p.requires_grad == False  #!\n" + TRAIN + STEP,
        "`p.requires_grad == False` compares, and drops the result",
    ),
    "a compared rate": (
        NET + TRAIN + STEP + '    opt.param_groups[0]["lr"] == 0.01  #!\n',
        "compares, and drops the result",
    ),
    "a misspelled flag": (
        NET + "for p in net[0].parameters():\n    p.require_grad = False  #!\n" + TRAIN + STEP,
        "`p.require_grad = False` writes to `require_grad`, which no line of the program reads",
    ),
    "a turned operator": (
        NET
        + TRAIN
        + ADDED.replace("loss += 0.1 * net[0].weight.abs().mean()", ("loss =+ 0.1 * net[0].weight.abs().mean()  #!")),
        "`loss =+ ...` assigns a new value: `+=` adds",
    ),
    "another misspelled flag": (
        NET + "net[0].weight.requires_gard = False  #!\n" + TRAIN + STEP,
        "the flag of a tensor is called `requires_grad`",
    ),
}
RIGHT = {
    "a sum": NET + TRAIN + ADDED,
    "a sign": NET + TRAIN + ADDED.replace("loss += ", "loss = +loss +"),
    "calls": NET + TRAIN + "    net.train()\n" + STEP + "net.eval()\n",
    "a method of the script's own object": "from types import SimpleNamespace as Own\ntimer = Own(autocast=print)\n"
    + NET + TRAIN + STEP + "    timer.autocast()\n",
    "a context": NET + TRAIN + STEP + "    with torch.no_grad():\n        net(torch.randn(2, 4))\n",
    "an attribute that is kept": NET + TRAIN + STEP + "switch = net.eval\nswitch()\n",
    "a property of the program": NET
    + "class Loop:\n    @property\n    def train(self):\n        opt.step()\nloop = Loop()\n"
    + TRAIN + STEP + "    loop.train\n",
    "a comparison that is used": NET + TRAIN + STEP + "assert net[0].weight.requires_grad == True\n",
    "an attribute that is read": NET + "net[0].weight.require_grad = False\nif net[0].weight.require_grad: print()\n"
    + TRAIN + STEP,
    "an attribute of an own class": "class Config:\n    def __init__(self):\n        self.require_grad = True\n"
    + NET + TRAIN + STEP,
}  # fmt: skip


@pytest.mark.parametrize(("body", "text"), WRONG.values(), ids=WRONG)
def test_a_statement_that_does_nothing_is_named(tmp_path: Path, body: str, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_statements_that_do_something_are_left_alone(tmp_path: Path, body: str) -> None:
    assert not [each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS)]


OF_GROUPS = "    for group in opt.param_groups:\n        "
IDLE_GROUPS = {
    "a rate": NET + TRAIN + STEP + OF_GROUPS + 'lr = group["lr"] * 0.5  #!\n',
    "another dict": NET + TRAIN + STEP + OF_GROUPS + 'group = {**group, "lr": 0.01}  #!\n',
}
USED_GROUPS = {
    "written": NET + TRAIN + STEP + OF_GROUPS + 'group["lr"] = group["lr"] * 0.5\n',
    "printed": NET + TRAIN + STEP + OF_GROUPS + 'lr = group["lr"]\n        print(lr)\n',
    "read after the loop": NET + TRAIN + STEP + OF_GROUPS + 'lr = group["lr"]\n    print(lr)\n',
    "a method that changes": NET + TRAIN + STEP + OF_GROUPS + "old = group.update(lr=0.01)\n",
}


@pytest.mark.parametrize("name", IDLE_GROUPS)
def test_a_statement_that_leaves_the_groups_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, IDLE_GROUPS[name]) if "changes no group" in each.text)
    assert found.labels[0].span.line == marked(IDLE_GROUPS[name])


@pytest.mark.parametrize("name", USED_GROUPS)
def test_a_statement_that_uses_a_group_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, USED_GROUPS[name]) if "changes no group" in each.text] == []
