"""Checks the sentence about values of a trained parameter that are computed once and used after its steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ENTROPY = """\
net = nn.Linear(2, 3)
log_alpha = torch.zeros(1, requires_grad=True)
alpha = log_alpha.exp().detach()  #!
opt = torch.optim.Adam([*net.parameters()], lr=0.01)
tune = torch.optim.Adam([log_alpha], lr=0.1)
for _ in range(6):
    log_p = net(torch.randn(4, 2)).log_softmax(1)
    loss = (alpha * log_p).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    tuned = -(log_alpha * (log_p + 1).detach()).mean()
    tune.zero_grad()
    tuned.backward()
    tune.step()
"""
MADE = "net.kept = {}\nnet.kept['alpha'] = log_alpha.exp().item()"
ITEM = ENTROPY.replace("alpha = log_alpha.exp().detach()", MADE).replace("(alpha *", "(net.kept['alpha'] *")
NUMBER = "log_alpha.exp().item()"
TERM = "def term(log_p, alpha):\n    scaled = alpha * log_p\n    return scaled.sum(1)\n"
PARTIAL = "import functools\n" + TERM + ENTROPY.replace(
    "alpha = log_alpha.exp().detach()", f"objective = functools.partial(term, alpha={NUMBER})"
).replace("(alpha * log_p).sum(1)", "objective(log_p)")  # fmt: skip
OBJECT = "class Term:\n    def __init__(self, size):\n        self.size = size\n"
OBJECT += "    def __call__(self, log_p):\n        return (self.size * log_p).sum(1)\n"
OBJECT += PARTIAL.replace("functools.partial(term, alpha=", "Term(size=")
FACTORY = "def make(alpha):\n    def objective(log_p):\n        return (alpha * log_p).sum(1)\n    return objective\n"
FACTORY += PARTIAL.replace(TERM, "").replace("functools.partial(term, alpha=", "make(alpha=")
DEFAULT = PARTIAL.replace(f"functools.partial(term, alpha={NUMBER})", f"lambda p, a={NUMBER}: (a * p).sum(1)")
RENEWED = f"    tune.step()\n    objective.size = {NUMBER}\n"
WRONG = {
    "given to partial()": PARTIAL,
    "given to a constructor": OBJECT,
    "given to a function that makes one": FACTORY,
    "a default value": DEFAULT,
    "a tensor": ENTROPY,
    "without gradients": ENTROPY.replace("alpha = log_alpha.exp().detach()", "alpha = torch.exp(log_alpha.detach())"),
    "a number": ENTROPY.replace("log_alpha.exp().detach()", "log_alpha.exp().item()"),
    "an attribute": ENTROPY.replace("alpha = log_alpha.exp().detach()", "net.alpha = log_alpha.exp().item()").replace(
        "(alpha *", "(net.alpha *"),
    "an item of a dict": ITEM,
    "a number that is shown later": ENTROPY.replace("log_alpha.exp().detach()", "log_alpha.exp().item()")
    + "    print(f'{log_alpha.exp().item():.3f}')\n",
}  # fmt: skip
RIGHT = {
    "beside the value of now": ENTROPY.replace("loss = (", "loss = (log_alpha.exp().detach() * net.bias.sum()) + ("),
    "a name of the start": ENTROPY.replace("alpha = log_alpha.exp().detach()", (
        "alpha_fixed = log_alpha.exp().detach()")).replace("(alpha *", "(alpha_fixed *"),
    "a unit": PARTIAL.replace("alpha)", "unit)").replace("scaled = alpha", "scaled = unit").replace("alpha=", "unit="),
    "partial() with another value": PARTIAL.replace("objective(log_p)", f"objective(log_p, alpha={NUMBER})"),
    "the keywords of partial()": PARTIAL.replace(
        "    tune.step()\n", f"    tune.step()\n    objective.keywords['alpha'] = {NUMBER}\n"),
    "an object that gets a new value": OBJECT.replace("    tune.step()\n", RENEWED),
    "a function that is made again": FACTORY.replace(
        "    tune.step()\n", f"    tune.step()\n    objective = make(alpha={NUMBER})\n"),
    "an attribute of another object": OBJECT.replace("objective(log_p)", "F.linear(log_p, net.size)").replace(
        "class Term", "import torch.nn.functional as F\nclass Term").replace(
        "opt =", "net.register_buffer('size', torch.ones(1, 3))\nopt =", 1),
    "an item that is set again": ITEM.replace(
        "    tune.step()\n", "    tune.step()\n    net.kept['alpha'] = log_alpha.exp().item()\n"),
    "an item of a dict with another name": ITEM.replace("net.kept['alpha'] =", "kept = net.kept\nkept['alpha'] =")
    .replace("    tune.step()\n", "    tune.step()\n    kept.update({k: log_alpha.exp().item() for k in kept})\n"),
    "again for each loss": ENTROPY.replace("    log_p =", "    alpha = log_alpha.exp().detach()\n    log_p ="),
    "a number again": ENTROPY.replace(".exp().detach()", ".exp().item()").replace(
        "    tune.step()\n", "    tune.step()\n    alpha = log_alpha.exp().item()\n"),
    "with a graph": ENTROPY.replace("(alpha *", "(log_alpha.exp().detach() *"),
    "an anchor": ENTROPY.replace("(alpha * log_p)", "(log_p + (alpha - log_alpha.exp()) ** 2)"),
    "a copy": ENTROPY.replace("log_alpha.exp().detach()", "log_alpha.detach().clone()"),
    "not trained": ENTROPY.replace("    tune.step()\n", ""),
    "again by another name": ENTROPY.replace("alpha = log_alpha.exp().detach()", (
        "net.alpha = log_alpha.exp().item()\nsame = net")).replace("(alpha *", "(net.alpha *").replace(
        "    tune.step()\n", "    tune.step()\n    same.alpha = log_alpha.exp().item()\n"),
    "set without its name": ENTROPY.replace("alpha = log_alpha.exp().detach()", "net.alpha = log_alpha.exp().item()")
    .replace("(alpha *", "(net.alpha *").replace(
        "    tune.step()\n", "    tune.step()\n    setattr(net, 'alpha', float(log_alpha.exp()))\n"),
    "given anew": ENTROPY.replace("    tune.step()\n", "    tune.step()\n    alpha.data = log_alpha.exp().detach()\n"),
    "as an array": ENTROPY.replace("    tune.step()\n", (
        "    tune.step()\n    alpha.numpy()[:] = log_alpha.exp().item()\n")),
    "trained in the same pass": ENTROPY.replace("loss = (alpha * log_p).sum(1).mean()", (
        "loss = (alpha * log_p).sum(1).mean() + (log_alpha * log_p).mean()")),
    "several numbers": ENTROPY.replace("torch.zeros(1,", "torch.zeros(3,"),
    "of another name": ENTROPY.replace("log_alpha.exp().detach()", "log_alpha.exp().item()").replace(
        "(alpha *", "(0.2 *"),
}  # fmt: skip
WORDS = "once, before its first step"


@pytest.mark.parametrize("name", WRONG)
def test_a_value_from_before_the_steps_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "computes a value of `log_alpha` once" in found.text
    assert "uses this value after 5 steps of it" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_values_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
