"""Checks the sentence about a model that goes on from one fold of a cross-validation to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
def build():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    return net, torch.optim.Adam(net.parameters(), lr=0.01)
def fit(net, opt, x, y):
    for _ in range(3):
        loss = (net(x).squeeze(1) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
def score(net, x, y):
    with torch.no_grad():
        return (net(x).squeeze(1) - y).abs().mean().item()
def splits(n, k):
    parts = torch.randperm(n).chunk(k)
    for i in range(k):
        yield torch.cat([p for j, p in enumerate(parts) if j != i]), parts[i]
x, y = torch.randn(40, 4), torch.randn(40)
def main():
    scores, fold_of = [], torch.arange(40) % 4
    {0}
main()
"""
LOOP = (
    "for fold, (train, held) in enumerate(splits(40, 4)):{1}\n        {0}fit(net, opt, x[train], y[train])\n"
    "        scores.append(score(net, x[held], y[held]))"
)
MASKS = (
    "for fold in range(4):{1}\n        {0}held = fold_of == fold\n        fit(net, opt, x[~held], y[~held])\n"
    "        scores.append(score(net, x[held], y[fold_of != fold][:10]))"
)
WRONG = {
    "pairs": SCRIPT.format("net, opt = build()\n    " + LOOP.format("", "  #!")),
    "masks": SCRIPT.format("net, opt = build()\n    " + MASKS.format("", "  #!")),
    "an optimizer for each": SCRIPT.format(
        "net, opt = build()\n    " + LOOP.format("opt = torch.optim.SGD(net.parameters(), lr=0.1); ", "  #!")
    ),
}
RIGHT = {
    "pairs": SCRIPT.format(LOOP.format("net, opt = build(); ", "")),
    "masks": SCRIPT.format(MASKS.format("net, opt = build()\n        ", "")),
    "a first one": SCRIPT.format("net, opt = build()\n    " + LOOP.format("net, opt = build(); ", "")),
    "set back": SCRIPT.format(
        "net, opt = build()\n    start = {k: v.clone() for k, v in net.state_dict().items()}\n    "
        + LOOP.format("net.load_state_dict(start); ", "")
    ),
    "set back by hand": SCRIPT.format(
        "net, opt = build()\n    "
        + LOOP.format("[torch.nn.init.normal_(p, 0, 0.1) for p in net.parameters()]\n        ", "")
    ),
    "one test for all": SCRIPT.format(
        "net, opt = build()\n    for part in fold_of.split(10):\n        fit(net, opt, x[part], y[part])\n"
        "        scores.append(score(net, x, y))"
    ),
    "another set of rows": SCRIPT.format("net, opt = build()\n    " + LOOP.format("", "")).replace(
        "score(net, x[held], y[held])", "score(net, other_x[:9], other_y[:9])").replace(
        "x, y = ", "other_x, other_y = torch.randn(20, 4), torch.randn(20)\nx, y = "),
    "evaluated first": SCRIPT.format(
        "net, opt = build()\n    fit(net, opt, x[:4], y[:4])\n    for fold in torch.randperm(40).chunk(4):\n"
        "        pred = net(x[fold]).squeeze(1).detach()\n        scores.append((pred != y[fold]).float().mean())\n"
        "        scores.append(score(net, x[fold], y[fold]))\n        fit(net, opt, x[fold], y[fold])"
    ),
    "one fold for all": SCRIPT.format(
        "net, opt = build()\n    other = 3\n    for fold, held in enumerate(torch.randperm(40).chunk(4)):\n"
        "        if fold != other:\n            for part in held.split(5):\n"
        "                fit(net, opt, x[part], y[part])\n"
        "        scores.append(score(net, x[held], y[held]))"
    ),
    "the rows of this round": SCRIPT.format("net, opt = build()\n    " + LOOP.format("", "")).replace(
        "fit(net, opt, x[train], y[train])", "for part in train.split(10):\n            fit(net, opt, x[part], y[part])"
    ).replace("score(net, x[held], y[held])", "score(net, x[train], y[train])"),
    "masks of this round": SCRIPT.format("net, opt = build()\n    " + MASKS.format("", "")).replace(
        "x[~held], y[~held]", "x[fold_of != fold], y[fold_of != fold]").replace(
        "score(net, x[held]", "score(net, x[fold_of != fold][:10]"),
    "a part of the rows of this round": SCRIPT.format("net, opt = build()\n    " + LOOP.format("", "")).replace(
        "score(net, x[held], y[held])", "score(net, x[train[:9]], y[train[:9]])"),
    "another mask of these rows": SCRIPT.format("net, opt = build()\n    " + MASKS.format("", "")).replace(
        "score(net, x[held]", "score(net, x[fold_of != fold]").replace("y[fold_of != fold][:10]", "y[fold_of != fold]"),
    "a model for each": SCRIPT.format(
        "nets = [build() for _ in range(1)] + [build()] + [build()] + [build()]\n    "
        + LOOP.format("net, opt = nets[fold]; ", "")
    ),
    "pictures of a map": SCRIPT.format(
        "net, opt = build()\n    frames = list(zip(x.split(10), y.split(10)))\n    for i, kf in enumerate(frames):\n"
        "        for part in [each for j, each in enumerate(frames) if j != i] + [kf]:\n"
        "            fit(net, opt, *part)\n        scores.append(score(net, *kf))"
    ),
}  # fmt: skip
WORDS = "goes on from each fold to the next"


@pytest.mark.parametrize("name", WRONG)
def test_models_that_go_on_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_models_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
