"""Checks the sentence about a `ReduceLROnPlateau` whose metric gets better against its mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PLAIN = """\
from torch.optim.lr_scheduler import ReduceLROnPlateau
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.02)
plan = ReduceLROnPlateau(opt, mode="max", factor=0.8, patience=1)  #!
x = torch.randn(64, 4)
y = (x * torch.tensor([2.0, 1.0, -1.0, 3.0])).sum(1, keepdim=True)

def evaluate():
    with torch.no_grad():
        return (net(x) - y).pow(2).mean().item()

for epoch in range(16):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    val_loss = evaluate()
    plan.step(val_loss)
"""
ACCURACY = PLAIN.replace('mode="max", ', "").replace(
    "plan.step(val_loss)", ("accuracy = 1 / (1 + val_loss)\n    plan.step(accuracy)")
)
WRONG = {
    "a loss that falls": (PLAIN, "waits for its metric to rise: it falls from"),
    "a loss that is a tensor": (PLAIN.replace("step(val_loss)", "step(loss)"), "waits for its metric to rise"),
    "a value that a function of the error gives": (
        PLAIN.replace("val_loss", "value").replace("evaluate()", "mean_error()"), "waits for its metric to rise"),
    "an entry of a history": (
        PLAIN.replace("plan.step(val_loss)", "h = {'val_loss': val_loss}\n    plan.step(metrics=h['val_loss'])"),
        "waits for its metric to rise"),
    "the last of a list": (
        PLAIN.replace("val_loss", "val_losses").replace("plan.step(val_losses)", "plan.step([val_losses][-1])"),
        "waits for its metric to rise"),
    "an accuracy that rises": (ACCURACY, "waits for its metric to fall: it rises from"),
}  # fmt: skip
RIGHT = {
    "a loss that is to fall": PLAIN.replace('mode="max", ', ""),
    "an accuracy that is to rise": ACCURACY.replace("factor", 'mode="max", factor'),
    "the loss with another sign": PLAIN.replace("step(val_loss)", "step(-val_loss)"),
    "a loss that gets worse": PLAIN.replace('mode="max", ', "").replace(
        "plan.step(val_loss)", "plan.step(1 / val_loss)"),
    "an accuracy that gets worse": ACCURACY.replace("factor", 'mode="max", factor').replace(
        "step(accuracy)", "step(1 - accuracy)"),
    "a loss that rises, with another sign": PLAIN.replace("return (net", "return 1 / (net").replace(
        "step(val_loss)", "step(-val_loss)"),
    "a share that is not right": PLAIN.replace('mode="max", ', "").replace("val_loss", "acc").replace(
        "step(acc)", "step(1 - acc)"),
    "a value with another sign": PLAIN.replace('mode="max", ', "").replace("val_loss", "acc").replace(
        "plan.step(acc)", "acc_loss = -acc\n    plan.step(acc_loss)"),
    "a loss that stalls": PLAIN.replace("plan.step(val_loss)", "plan.step(min(val_loss, 0.001) + 0.01 * (epoch % 2))"),
    "a metric without a meaning": PLAIN.replace("val_loss", "value").replace("evaluate", "look"),
    "an error that rises": ACCURACY.replace("step(accuracy)", "step(1 - 1 / accuracy)"),
    "what is left of an accuracy": PLAIN.replace('mode="max", ', "").replace(
        "plan.step(val_loss)", "acc = 1 - 1 / (1 + val_loss)\n    plan.step(1 - acc)"),
    "a loss with another sign, by a name": PLAIN.replace("pow(2)", "neg()").replace(
        "plan.step(val_loss)", "score = -val_loss\n    plan.step(score)"),
    "a loss times -1": PLAIN.replace("pow(2)", "neg()").replace("step(val_loss)", "step(-1 * val_loss)"),
    "no cut": PLAIN.replace("patience=1", "patience=50"),
    "a loss and an accuracy": PLAIN.replace("step(val_loss)", "step(val_loss * 1.0 + 0 * len('accuracy'))"),
}  # fmt: skip
WORDS = "waits for its metric"


@pytest.mark.parametrize("name", WRONG)
def test_a_metric_against_the_mode_is_named(tmp_path: Path, name: str) -> None:
    program, words = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, program) if WORDS in each.text)
    assert words in found.text
    assert found.labels[0].span.line == marked(program)


@pytest.mark.parametrize("name", RIGHT)
def test_a_metric_of_the_mode_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
