"""Checks the sentence about losses whose sign is turned twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

DANN = """\
class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, gradient):
        return -gradient

body, head, domain = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters(), *domain.parameters()], lr=0.1)
for _ in range(3):
    z = body(torch.randn(8, 3)).tanh()
    task = nn.functional.cross_entropy(head(z), torch.randint(0, 2, (8,)))
    place = nn.functional.binary_cross_entropy_with_logits(domain(Turn.apply(z)), torch.rand(8, 1).round())
    loss = task - 0.3 * place  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "subtracted": DANN,
    "times a negative number": DANN.replace("task - 0.3 * place", "task + place * -0.3"),
    "a half of two": DANN.replace("0.3 * place", "0.5 * (place + place)"),
    "a weight of a dict": DANN.replace("task - 0.3 * place", (
        "sum(w * each for w, each in zip(SIGNS.values(), (task, place)))")).replace("body,", (
        "SIGNS = {'task': 1.0, 'place': -0.3}\nbody,")),
    "an item of a dict": DANN.replace("task - 0.3 * place", "task + SIGNS['place'] * place").replace("body,", (
        "SIGNS = {'task': 1.0, 'place': -0.3}\nbody,")),
    "a method": DANN.replace("task - 0.3 * place", "task + place.mul(-0.3)"),
    "a strength with a minus": DANN.replace("task - 0.3 * place", "task + -step * place").replace("for _", "for step"),
    "a gradient with a name": DANN.replace("return -gradient", (
        "turned = gradient.neg() * 0.5\n        return turned")),
    "a strength": DANN.replace("forward(ctx, x)", "forward(ctx, x, s)").replace("return -gradient", (
        "return gradient.neg() * 0.5, None")).replace("Turn.apply(z)", "Turn.apply(z, 1.0)"),
}  # fmt: skip
PARTS = DANN.replace("task - 0.3 * place", "sum(SIGNS[key] * parts[key] for key in parts)").replace(
    "    loss =", "    parts = {'task': task, 'place': place}\n    loss =").replace(
    "body,", "SIGNS = {'task': 1.0, 'place': -0.3}\nbody,")  # fmt: skip
KEPT = PARTS.replace("SIGNS = {'task': 1.0, 'place': -0.3}", (
    "class Total:\n    def __init__(self, weights):\n        self.weights = weights\n"
    "    def __call__(self, parts):\n        value = 0.0\n        for key, each in parts.items():\n"
    "            value = value + self.weights[key] * each  #!\n        return value\n"
    "total = Total(weights={'task': 1.0, 'place': -0.3})")).replace(
    "sum(SIGNS[key] * parts[key] for key in parts)  #!", "total(parts)")  # fmt: skip
WRONG |= {
    "weights of a dict by keys": PARTS,
    "weights that an object keeps": KEPT,
    "weights that an object keeps by another name": KEPT.replace("self.weights", "self.factors"),
    "a negative alpha": DANN.replace("task - 0.3 * place", "torch.add(task, place, alpha=-0.3)"),
    "weights that an object gets by their place": KEPT.replace("(weights={'task'", "({'task'"),
    "weights by get()": PARTS.replace("SIGNS[key] * parts[key] for key in parts", (
        "each.mul(SIGNS.get(key, 1.0)) for key, each in parts.items()")),
    "weights of a list": PARTS.replace("SIGNS[key] * parts[key] for key in parts", (
        "SIGNS[n] * each for n, each in enumerate(parts.values())")).replace(
        "{'task': 1.0, 'place': -0.3}", "[1.0, -0.3]"),
}  # fmt: skip
RIGHT = {
    "a minimax of entropy": DANN.replace("binary_cross_entropy_with_logits(domain(Turn.apply(z)), torch.rand(8, 1)", (
        "cross_entropy(head(Turn.apply(z)), head(Turn.apply(z))")).replace(".round())", ".softmax(1))").replace(
        "head(Turn.apply(z)), head(Turn.apply(z))", "(s := head(Turn.apply(z))), s"),
    "positive weights by keys": PARTS.replace("-0.3", "0.3"),
    "another key is negative": PARTS.replace("1.0, 'place': -0.3", "-1.0, 'place': 0.3"),
    "keys in another order": PARTS.replace("1.0, 'place': -0.3", "-1.0, 'place': 0.3").replace(
        "{'task': task, 'place': place}", "{'place': place, 'task': task}"),
    "a weight that is changed": PARTS.replace("\nbody,", "\nSIGNS['place'] = 0.3\nbody,"),
    "an object with new weights": KEPT.replace("\nbody,", "\ntotal.weights = {'task': 1.0, 'place': 0.3}\nbody,"),
    "a negative alpha of a difference": DANN.replace("task - 0.3 * place", "task.sub(place, alpha=-0.3)"),
    "two objects that keep weights": KEPT.replace("\nbody,", (
        "\ntotal = Total({'task': 1.0, 'place': 0.3})\nbody,")),
    "sorted keys": PARTS.replace("1.0, 'place': -0.3", "-1.0, 'place': 0.3").replace("in parts)", "in sorted(parts))"),
    "a positive weight of a dict": DANN.replace("task - 0.3 * place", (
        "sum(w * each for w, each in zip(SIGNS.values(), (task, place)))")).replace("body,", (
        "SIGNS = {'task': -1.0, 'place': 0.3}\nbody,")),
    "a weight in the third place": DANN.replace("task - 0.3 * place", (
        "sum(w * each for _, each, w in maker.rows(task, place))")).replace("body,", (
        "def rows(*terms):\n    return [(n, each, 0.3) for n, each in enumerate(terms)]\n"
        "maker = type('Maker', (), {'rows': staticmethod(rows)})\nbody,"), 1),
    "a minus before a negative number": DANN.replace("task - 0.3 * place", "task + -low * place").replace(
        "body,", "low = -0.3\nbody,"),
    "added": DANN.replace("task - 0.3", "task + 0.3"),
    "subtracted without the layer": DANN.replace("Turn.apply(z)", "z"),
    "a layer that scales": DANN.replace("return -gradient", "return 0.5 * gradient"),
    "another loss is subtracted": DANN.replace("task - 0.3 * place", "place - 0.1 * task"),
    "the negative of the negative": DANN.replace("task - 0.3 * place", "task - 0.3 * -place"),
    "added with a larger weight": DANN.replace("task - 0.3 * place", "task + place - 0.3 * place"),
    "a head that maximizes": DANN.replace("lr=0.1)", "lr=0.1, maximize=True)"),
    "an entropy": DANN.replace("nn.functional.binary_cross_entropy_with_logits(domain(Turn.apply(z)), "
                               "torch.rand(8, 1).round())", "-(domain(Turn.apply(z)).sigmoid().log()).mean()"),
}  # fmt: skip
WORDS = "turns its gradient once more"


@pytest.mark.parametrize("name", WRONG)
def test_a_sign_that_is_turned_twice_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "and `Turn` turns its gradient once more" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_signs_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
