"""Checks the sentences about values that are overwritten before they are read, and about statements of loops that do
nothing to parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.standing_out import marked, sentences

from tensorlens.diagnostics import report_on

DATA = "import copy\nx, y = torch.randn(32, 4), torch.randn(32, 1)\n"
NORM = """\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.ready = nn.Parameter(torch.zeros(4)), False
    def forward(self, v):
        if not self.ready:
            with torch.no_grad():
                self.shift.copy_(-v.mean(0))  #!
        return v + self.shift
model = nn.Sequential(nn.Linear(4, 4), Norm(), nn.Linear(4, 1))
"""
TRAIN = """\
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    loss = (model(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MLP = "model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))\n"
INIT = """\
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)  #!
        nn.init.zeros_(m.bias)
source, model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
"""
LOAD = "model.load_state_dict(source.state_dict())\n"
TARGET = """\
target = copy.deepcopy(model)
def sync():
    for t, p in zip(target.parameters(), model.parameters()):
        t = p.detach().clone()  #!
sync()
"""
FREEZE = """\
for name, p in model.named_parameters():
    if name.startswith("encoder."):
        p.requires_grad = False  #!
"""
LOST = "before anything reads what the steps have changed"
WRONG = {
    "an initialisation at each pass": (
        DATA + NORM + TRAIN,
        "`self.shift.copy_(-v.mean(0))` overwrites `model[1].shift` after 5 of 6 steps, " + LOST),
    "weights set to their first values": (
        DATA + MLP + "first = [p.detach().clone() for p in model.parameters()]\n" + TRAIN
        + "    for p, f in zip(model.parameters(), first):\n        p.data = f.clone()  #!\n", LOST),
    "weights copied from the first ones": (
        DATA + MLP + "first = [p.detach().clone() for p in model.parameters()]\n" + TRAIN
        + "    for p, f in zip(model.parameters(), first):\n        p.data.copy_(f)  #!\n", LOST),
    "weights copied from arrays": (
        DATA + MLP + "first = [p.detach().clone().numpy() for p in model.parameters()]\n" + TRAIN
        + "    for p, f in zip(model.parameters(), first):\n        p.data.copy_(torch.from_numpy(f))  #!\n",
        "and 1 more after 6 of 6 steps, " + LOST),
    "values that came from a copied list": (
        DATA + "first = torch.tensor([[0.1], [0.2], [0.3], [0.4]])\nw = nn.Parameter(torch.tensor(first.tolist()))\n"
        + TRAIN.replace("model.parameters()", "[w]").replace("model(x)", "(x @ w)")
        + "    w.data.copy_(first)  #!\n",
        LOST),
    "loaded, and initialised again": (
        DATA + INIT + LOAD + "model.apply(init)\n" + TRAIN,
        "and other lines overwrite 4 of 4 tensors that `model.load_state_dict(...)` has loaded, before anything reads"),
    "a target that is never written": (
        DATA + MLP + TARGET + TRAIN,
        "`t = p.detach().clone()` only sets the variable `t`, and changes no parameter"),
    "a prefix that no parameter has": (
        DATA + MLP + FREEZE + TRAIN,
        '`p.requires_grad = False` never runs: `name.startswith("encoder.")` holds for no parameter of the loop'),
    "a momentum that is the gradient": (
        DATA + MLP + "class Momentum(torch.optim.Optimizer):\n    @torch.no_grad()\n    def step(self):\n"
        "        for p in self.param_groups[0]['params']:\n            state = self.state[p]\n"
        "            if 'sum' not in state:\n                state['sum'] = p.grad\n            else:\n"
        "                state['sum'].mul_(0.9).add_(p.grad)  #!\n            p.sub_(state['sum'], alpha=0.1)\n"
        + TRAIN.replace("optim.SGD(model.parameters(), lr=0.1)", "zeros(1)\nopt = Momentum(model.parameters(), {})")
        .replace("zero_grad()", "zero_grad(set_to_none=False)"),
        "updates a tensor from itself: `state['sum']` and `p.grad` share their memory"),
}  # fmt: skip
RIGHT = {
    "an initialisation at the first pass": DATA + NORM.replace(
        "  #!\n", "\n                self.ready = True\n") + TRAIN,
    "weights that are normalised": DATA + MLP + TRAIN
    + "    with torch.no_grad():\n        for p in model.parameters():\n            p.copy_(p / p.norm())\n",
    "weights between limits": DATA + MLP + TRAIN + "    for p in model.parameters():\n        p.data.clamp_(-1, 1)\n",
    "slow weights": DATA + MLP + "slow = [p.detach().clone() for p in model.parameters()]\n" + TRAIN
    + "    with torch.no_grad():\n        for p, s in zip(model.parameters(), slow):\n"
    "            s += 0.5 * (p - s)\n            p.copy_(s)\n",
    "a step that is taken back": DATA + MLP + TRAIN.replace("    opt.step()\n", (
        "    kept = [p.detach().clone() for p in model.parameters()]\n    opt.step()\n"
        "    if (model(x) - y).square().mean() > loss:\n        with torch.no_grad():\n"
        "            for p, k in zip(model.parameters(), kept):\n                p.copy_(k)\n")),
    "loaded after the initialisation": DATA + INIT.replace("  #!", "") + "model.apply(init)\n" + LOAD + TRAIN,
    "a new head": DATA + INIT.replace("  #!", "") + LOAD + "model[1].apply(init)\n" + TRAIN,
    "a target that is copied": DATA + MLP + TARGET.replace("  #!", "").replace("t = p", "t.data = p") + TRAIN,
    "an array of the same memory reads them": DATA + "w = nn.Parameter(torch.full((4, 1), 0.2))\n"
    "array = w.detach().numpy()\n"
    + TRAIN.replace("model.parameters()", "[w]").replace("model(x)", "(x @ w)")
    + "    with torch.no_grad():\n        w.copy_(torch.from_numpy(array.clip(0, 1)))\n",
    "made from an array that reads them": "import numpy as np\n" + DATA
    + "array = np.full((4, 1), 0.2, dtype='float32')\n"
    "w, moves = nn.Parameter(torch.from_numpy(array)), []\n"
    + TRAIN.replace("model.parameters()", "[w]").replace("model(x)", "(x @ w)")
    + "    moves.append(array.copy())\n    with torch.no_grad():\n        w.normal_()\n",
    "states that are saved": DATA + MLP + "import io\n"
    "first = [p.detach().clone() for p in model.parameters()]\n" + TRAIN
    + "    torch.save(model.state_dict(), io.BytesIO())\n"
    "    for p, f in zip(model.parameters(), first):\n        p.data = f.clone()\n",
    "a method that changes what it is called on": DATA + MLP + "for p in model.parameters():\n"
    "    p = p.requires_grad_(True)\n" + TRAIN,
    "a function that changes its argument": DATA + MLP + "for p in model.parameters():\n"
    "    p = nn.init.normal_(p)\n" + TRAIN,
    "a loop that skips": DATA + MLP + FREEZE.replace("  #!", "").replace(
        "    if name", "    if name.endswith('bias'):\n        continue\n    if name") + TRAIN,
    "a value that the loop uses": DATA + MLP + "norms = []\nfor name, p in model.named_parameters():\n"
    "    p = p.detach() * 2\n    norms.append(p.norm())\n" + TRAIN,
    "a prefix that parameters have": DATA + MLP + FREEZE.replace("encoder.", "0.") + TRAIN,
    "an option that is off": DATA + MLP + "freeze = False\n" + FREEZE.replace("if name", "if freeze and name") + TRAIN,
    "a function that is not called": DATA + MLP + "def freeze(model):\n"
    + "".join(f"    {line}\n" for line in FREEZE.splitlines()) + "    return model[0].weight.sum()\n" + TRAIN,
    "a momentum of its own": WRONG["a momentum that is the gradient"][0].replace("= p.grad\n", "= p.grad.clone()\n"),
}  # fmt: skip
WORDS = (LOST, "before anything reads them", "changes no parameter", "never runs", "share their memory")


@pytest.mark.parametrize("name", WRONG)
def test_values_that_nothing_reads_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_values_that_are_used_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []


def test_a_loop_before_the_recording_is_not_known(tmp_path: Path) -> None:
    """The loop has frozen a parameter, and only what comes after it is recorded."""
    text = "import torch\nfrom torch import nn\nimport tensorlens\nmodel = nn.Linear(4, 1)\nx = torch.randn(8, 4)\n"
    text += FREEZE.replace("encoder.", "b").replace("  #!", "")
    text += "with tensorlens.trace(training=True) as lens:\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    text += "    for _ in range(3):\n        opt.zero_grad(); model(x).sum().backward(); opt.step()\n"
    script = tmp_path / "script.py"
    script.write_text(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, str(script), "exec"), names)
    found = report_on(names["lens"].trace()).standing_out
    assert [each.text for each in found or () if "never runs" in each.text] == []
