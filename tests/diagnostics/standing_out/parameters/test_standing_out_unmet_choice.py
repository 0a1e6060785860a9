"""Checks the sentence about a flag of parameters that is set below a condition which holds for none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = "model = nn.Sequential()\nmodel.add_module('net', nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)))\n"
TRAIN = (
    "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(4):\n    opt.zero_grad()\n"
    "    model(torch.randn(8, 4)).square().mean().backward()\n    opt.step()\n"
)
FREEZE = (
    "def freeze(model, names=()):\n    for p in (p for n, p in model.named_parameters() if n.startswith(names)):\n"
    "        p.requires_grad_(False)  #!\n"
)
TUNER = """\
class Tuner:
    def __init__(self, model, keys=("0.",)):
        self.model = model
        self.freeze(keys)
    def freeze(self, keys):
        for name, p in self.model.named_parameters():
            if any(name.startswith(key) for key in keys):
                p.requires_grad_(False)  #!
"""
WRONG = {
    "a helper": (NET + FREEZE + "freeze(model, names='0.')\n" + TRAIN, "`n.startswith(names)` holds for no parameter"),
    "a method": (NET + TUNER + "tuner = Tuner(model)\n" + TRAIN, "holds for no parameter"),
    "a comprehension": (
        NET + "[p.requires_grad_(False) for n, p in model.named_parameters() if n.startswith('0')]  #!\n" + TRAIN,
        "`n.startswith('0')` holds for no parameter",
    ),
    "a loop that skips each": (
        NET + "for n, p in model.named_parameters():\n    if not n.startswith('0.'):\n        continue\n"
        "    p.requires_grad = False  #!\n" + TRAIN,
        "`not n.startswith('0.')` holds for each parameter",
    ),
    "modules": (
        NET + "for n, part in model.named_children():\n    if n in ('0', '1'):\n"
        "        for p in part.parameters():\n            p.requires_grad = False  #!\n" + TRAIN,
        "holds for no module of the loop that has parameters",
    ),
}  # fmt: skip
RIGHT = {
    "a helper for any network": NET + FREEZE.replace("names=()", "names=('norm', 'embed')") + "freeze(model)\n" + TRAIN,
    "a network of adapters": NET.replace("'net'", "'lora'") + "for n, p in model.named_parameters():\n"
    "    if 'lora' in n:\n        continue\n    p.requires_grad_(False)\n" + TRAIN,
    "a helper that finds some": NET + FREEZE + "freeze(model, names='net.0.')\n" + TRAIN,
    "no names": NET + FREEZE + "freeze(model)\n" + TRAIN,
    "an option": NET + FREEZE + "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--freeze', default='none')\nfreeze(model, parser.parse_args([]).freeze)\n" + TRAIN,
    "a helper that is not called": NET + FREEZE + "if len(model) > 3:\n    freeze(model, '0.')\n" + TRAIN,
    "a helper that ends before": NET + FREEZE.replace("    for", "    if len(model) < 3:\n        return\n    for")
    + "freeze(model, '0.')\n" + TRAIN,
    "a condition on gradients": NET + "model(torch.randn(8, 4)).sum().backward()\nfor n, p in model.named_parameters():"
    "\n    if p.grad is None:\n        p.requires_grad_(False)\n" + TRAIN,
    "a class of modules": NET + "for n, part in model.named_modules():\n    if isinstance(part, nn.BatchNorm1d):\n"
    "        part.requires_grad_(False)\n" + TRAIN,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_flag_that_is_never_set_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if "never runs" in each.text)
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_a_flag_that_is_not_meant_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "never runs" in each.text] == []
