"""Checks the sentences about state of an optimizer that is a gradient, or that a loaded state dict shares with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

OPTIMIZER = """\
class Heavy(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, dict(lr=0.01))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = p.grad  #!
                state["buffer"].mul_(0.9).add_(p.grad)
                p.add_(state["buffer"], alpha=-0.01)

net = nn.Linear(4, 1)
opt = Heavy(net.parameters())
for _ in range(6):
    opt.zero_grad(set_to_none=False)
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
LOADED = """\
import copy
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.1)
def step():
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
step()
kept = KEPT
for _ in range(3):
    step()
opt.load_state_dict(kept)  #!
step()
"""
WRONG = {
    "a buffer that is the gradient": (
        OPTIMIZER,
        "the state `buffer` of `Heavy` is the `.grad` of `net.weight` and `net.bias` itself, and no copy",
    ),
    "a buffer that is a variable for the gradient": (
        OPTIMIZER.replace(
            "state = self.state[p]", "state, d = self.state[p], None\n                d = p.grad"
        ).replace("= p.grad  #!", "= d  #!"),
        "the state `buffer` of `Heavy` is the `.grad` of `net.weight` and `net.bias` itself, and no copy",
    ),
    "a state dict of the present state": (
        LOADED.replace("KEPT", "opt.state_dict()"),
        "`opt.load_state_dict(kept)` loads the tensors that `Adam` has anyhow: its `state_dict()` is no copy",
    ),
    "a state dict in a dict": (
        LOADED.replace("KEPT", "{'optimizer': opt.state_dict()}").replace("(kept)", "(kept['optimizer'])"),
        "`opt.load_state_dict(kept['optimizer'])` loads the tensors that `Adam` has anyhow",
    ),
}
RIGHT = {
    "a buffer that is a copy": OPTIMIZER.replace("p.grad  #!", "p.grad.clone()"),
    "new gradients in each round": OPTIMIZER.replace("set_to_none=False", ""),
    "a copy of the state": LOADED.replace("KEPT", "copy.deepcopy(opt.state_dict())"),
    "a cast of the present state": LOADED.replace("KEPT", "0")
    .replace("#!", "")
    .replace("opt.load_state_dict(kept)", "opt.load_state_dict(opt.state_dict())"),
    "a change of the present state": LOADED.replace("KEPT", "0").replace(
        "opt.load", "kept = opt.state_dict()\nkept['param_groups'][0]['lr'] = 0.01\nopt.load"
    ),
    "the state of another optimizer": LOADED.replace("KEPT", "opt.state_dict()").replace(
        "opt.load", "opt = torch.optim.Adam(net.parameters(), lr=0.1)\nopt.load"
    ),
}
WORDS = ("no copy",)


@pytest.mark.parametrize("name", WRONG)
def test_state_that_is_no_copy_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


def test_an_optimizer_of_the_script_is_labelled_where_the_script_makes_it(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, OPTIMIZER) if "no copy" in each.text)
    made = next(label for label in found.labels if label.role == "optimizer_made_here")
    assert (tmp_path / "script.py").read_text().splitlines()[made.span.line - 1] == "opt = Heavy(net.parameters())"


@pytest.mark.parametrize("name", RIGHT)
def test_copies_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
