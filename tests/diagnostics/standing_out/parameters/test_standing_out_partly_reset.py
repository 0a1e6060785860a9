"""Checks the sentence about loops that give only some parameters of a module new values."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

FOLDS = """\
net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1))

def reset(model):
    for layer in model.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()  #!

for fold in range(3):
    reset(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 3)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
RIGHT = {
    "all modules": FOLDS.replace("model.children()", "model.modules()"),
    "no inner ones": FOLDS.replace("nn.Sequential(nn.Linear(3, 4), nn.Tanh())", "nn.Linear(3, 4), nn.Tanh()"),
    "before the training": FOLDS.replace("    reset(net)\n", "").replace("for fold", "reset(net)\nfor fold"),
    "the head alone": FOLDS.replace("for layer in model.children():", "for layer in [model[1]]:"),
    "inner ones without a gradient": FOLDS.replace("\ndef", "net[0].requires_grad_(False)\n\ndef"),
    "the parts of a part": FOLDS.replace("reset(net)", "reset(net[1])").replace(
        "nn.Linear(4, 1))", "nn.Sequential(nn.Linear(4, 1)))"),
    "layers of a type": FOLDS.replace('hasattr(layer, "reset_parameters")', "isinstance(layer, nn.Linear)"),
    "a function that calls itself": FOLDS.replace("layer.reset_parameters()  #!",
        "layer.reset_parameters()\n        elif not isinstance(layer, nn.Sequential):\n            reset(layer)"),
    "frozen inner ones": FOLDS.replace("net.parameters()", "net[1].parameters()"),
    "new values elsewhere": FOLDS.replace("    reset(net)\n", "    reset(net)\n    reset(net[0])\n"),
}  # fmt: skip
WORDS = "new values between steps"


def test_a_partial_reset_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, FOLDS) if WORDS in each.text)
    assert found.text.startswith("`layer.reset_parameters()` gives `net[1].weight` and `net[1].bias` new values")
    assert "none to `net[0][0].weight` and `net[0][0].bias`" in found.text
    assert found.labels[0].span.line == marked(FOLDS)


@pytest.mark.parametrize("name", RIGHT)
def test_other_resets_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
