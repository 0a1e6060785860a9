"""Checks what `--training` says about rows to evaluate on that are a part of another permutation."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "a part of another permutation"
SCRIPT = """\
data, labels = torch.randn(200, 4), torch.randint(0, 2, (200,))
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train(rows):
    for part in rows[torch.randperm(len(rows))].split(30):
        loss = nn.functional.cross_entropy(net(data[part]), labels[part])
        opt.zero_grad()
        loss.backward()
        opt.step()

@torch.no_grad()
def evaluate(rows):
    return (net(data[rows]).argmax(1) == labels[rows]).float().mean()

for epoch in range(3):
{body}
"""
ONCE = SCRIPT.replace("for epoch", "order = torch.randperm(200)\nfor epoch")
EACH = """\
    train(torch.randperm(200)[:150])
    evaluate(torch.randperm(200)[150:])  #!
"""
ONE = """\
    train(order[:150])
    evaluate(order[150:])
"""
FOLDS = """\
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    order = torch.randperm(200)
    evaluate(order[150:])
    train(order[:150])
"""
FUNCTION = """\
    def split():
        return torch.randperm(200).split([150, 50])  #!
    train(split()[0])
    evaluate(split()[1])
"""
SET_BACK = """\
    net.reset_parameters()
    order = torch.randperm(200)
    train(order[:150])
    evaluate(order[150:])
"""
LOGGED = """\
    train(torch.randperm(200)[:100])
    evaluate(torch.randperm(200)[:100])
"""
HALVES = """\
    for part in torch.randperm(200).split(100):
        train(part)
    for part in torch.randperm(200).split(100):
        evaluate(part)
"""
HALVES_TRAINED = """\
    for part in torch.randperm(200).split(100):
        train(part)
evaluate(torch.randperm(200)[:100])
"""
DRAWN_WEIGHTS = """\
    for module in (net,):
        module.weight.data.normal_(0, 0.1)
        module.bias.data.zero_()
    order = torch.randperm(200)
    train(order[:150])
    evaluate(order[150:])
"""
STATE = """\
    state = torch.get_rng_state()
    first = torch.randperm(200)[:150]
    torch.set_rng_state(state)
    last = torch.randperm(200)[150:]
    train(first)
    evaluate(last)
"""
TASKS = """\
    order = torch.randperm(200)
    loss = nn.functional.cross_entropy(net(data[order[:100]]), labels[order[:100]])
    other = nn.functional.cross_entropy(net(data[order[100:]]), labels[order[100:]])
    opt.zero_grad()
    (loss + other).backward()
    opt.step()
    evaluate(order[100:])
"""
ANEW = "    order = torch.randperm(200)\n" + ONE.replace("evaluate(order[150:])", "evaluate(order[150:])  #!")
WRONG = {
    "two draws": SCRIPT.format(body=EACH),
    "a function that draws": SCRIPT.format(body=FUNCTION),
    "a draw for each epoch": SCRIPT.format(body=ANEW),
}
RIGHT = {
    "one draw": ONCE.format(body=ONE),
    "folds, each with a new model": SCRIPT.format(body=FOLDS),
    "a model that is set back": SCRIPT.format(body=SET_BACK),
    "a random half, to log the loss": SCRIPT.format(body=LOGGED),
    "two batches of all rows": SCRIPT.format(body=HALVES),
    "two batches of all rows, and a half to evaluate": SCRIPT.format(body=HALVES_TRAINED),
    "weights that are drawn anew": SCRIPT.format(body=DRAWN_WEIGHTS),
    "a state of the random numbers that is set back": ONCE.format(body=STATE),
    "tasks that train on both parts": SCRIPT.format(body=TASKS),
    "one seed for both": SCRIPT.format(
        body=FUNCTION.replace("        return", "        torch.manual_seed(4)\n        return")
    ),
    "some rows, to look at": ONCE.format(body=ONE + "    evaluate(torch.randperm(200)[:20])\n"),
    "as many rows of all, beside some held out before": ONCE.replace(
        "for epoch", ("held, known = data[order[150:]], labels[order[150:]]\nfor epoch")
    ).format(body="    train(order[:150])\n    evaluate(torch.randperm(200)[150:])\n"),
    "as many rows of all, to compare": ONCE.format(body=ONE + "    evaluate(torch.randperm(200)[150:])\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_of_another_permutation_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_rows_of_one_permutation_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
