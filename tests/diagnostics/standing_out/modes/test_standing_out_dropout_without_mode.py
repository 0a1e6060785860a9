"""Checks the sentence about `nn.functional.dropout()` without `training=`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SMALL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return DROPOUT
net = Net()
"""
TRAIN = """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    net.train(); opt.zero_grad(); net(torch.randn(8, 4)).square().mean().backward(); opt.step()
"""
EVAL = "net.eval()\nwith torch.no_grad():\n    print(net(torch.randn(8, 4)).mean())\n"
WORDS = "`eval()` of a module does not reach it"


def net(call: str) -> str:
    return SMALL.replace("DROPOUT", call) + TRAIN


WRONG = {
    "a rate": (net("nn.functional.dropout(self.fc(x), 0.3)  #!") + EVAL, "once: `eval()` of a module does not reach"),
    "whole channels, the rate by default": (
        net("torch.nn.functional.alpha_dropout(self.fc(x))  #!") + EVAL + EVAL, "2 times",
    ),
    "train(False), in inference mode": (
        net("nn.functional.dropout(self.fc(x), p=0.3, inplace=False)  #!")
        + EVAL.replace("eval()", "train(False)").replace("no_grad", "inference_mode"),
        "runs in training mode also where gradients are off",
    ),
}  # fmt: skip
PARTIAL = "from functools import partial\nSTEPS = {'thin': partial(nn.functional.dropout, p=0.3)}\n"
SPLIT = net("""self.attend(*self.fc(x)[None].expand(3, 1, 8, 4))
    def attend(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)  #!""").replace(
    "nn.Linear(4, 4)", "nn.Linear(4, 4); self.rate = 0.2") + EVAL  # fmt: skip
WRONG |= {
    "a partial function": (PARTIAL + net("STEPS['thin'](self.fc(x))  #!") + EVAL, "for `dropout()`, and runs"),
    "a default argument": (
        net("self.thin(self.fc(x), 0.3)  #!").replace("(self)", "(self, thin=nn.functional.dropout)").replace(
            "nn.Linear(4, 4)", "nn.Linear(4, 4); self.thin = thin") + EVAL, "for `dropout()`, and runs"),
    "a dict of options": (
        net("nn.functional.dropout(self.fc(x), **self.options)  #!").replace(
            "nn.Linear(4, 4)", "nn.Linear(4, 4); self.options = {'p': 0.3}") + EVAL, "has no `training=`, and runs"),
    "attention": (SPLIT, "has a `dropout_p` of 0.2 in both modes, and drops also where gradients are off, once"),
}  # fmt: skip
CHAIN = net("""x + STEPS['thin'](self.fc(x))  #!""").replace(
    "net = Net()", "net = nn.Sequential(*[Net() for _ in range(4)])"
)
JOINED = net("""self.grow(x)
    def grow(self, x):
        for _ in range(4):
            x = torch.cat([nn.functional.dropout(self.fc(x[:, -4:]), 0.2), x], 1)  #!
        return x""")
WRONG |= {
    "residual layers one after the other": (
        PARTIAL + "linear = partial(nn.Linear, 4, bias=False)\n" + CHAIN + EVAL, "gradients are off, 4 times"),
    "layers that join their results": (JOINED + EVAL, "gradients are off, 4 times"),
}  # fmt: skip
RIGHT = {
    "a mean of random results of residual layers": PARTIAL + CHAIN + EVAL.replace(
        "net(torch.randn(8, 4))", "sum(net(x) for x in [torch.randn(8, 4)] * 4)"),
    "a partial function of another name": PARTIAL.replace("nn.functional.dropout, p", "THIN, training=True, p")
        .replace("STEPS", "THIN = nn.functional.dropout\nSTEPS") + net("STEPS['thin'](self.fc(x))") + EVAL,
    "a partial function with the mode": PARTIAL + net("STEPS['thin'](self.fc(x), training=self.training)") + EVAL,
    "a partial function that is always on": PARTIAL.replace("p=0.3", "p=0.3, training=True")
        + net("STEPS['thin'](self.fc(x))") + EVAL,
    "a list of functions and layers": net("self.thin[1](self.thin[0](self.fc(x), 0.3, self.training))").replace(
        "nn.Linear(4, 4)",
        "nn.Linear(4, 4); self.d = nn.Dropout(0.3); self.thin = [nn.functional.dropout, self.d]") + EVAL,
    "attention that knows the mode": SPLIT.replace("=self.rate)", "=self.rate * self.training)"),
    "attention whose rate a method sets": SPLIT.replace("net = Net()", """
    def train(self, mode=True):
        self.rate = 0.2 if mode else 0.0
        return super().train(mode)
net = Net()"""),
    "the mode of the module": net("nn.functional.dropout(self.fc(x), 0.3, self.training)") + EVAL,
    "the mode by name": net("nn.functional.dropout(self.fc(x), p=0.3, training=self.training)") + EVAL,
    "a mode that is always on": net("nn.functional.dropout(self.fc(x), 0.3, training=True)") + EVAL,
    "only in training": net("nn.functional.dropout(self.fc(x), 0.3) if self.training else self.fc(x)") + EVAL,
    "below a condition, also without gradients": net("out").replace(
        "return out", "x = self.fc(x)\n        if self.training:\n            x = nn.functional.dropout(x, 0.3)\n"
        "        return x").replace("zero_grad();", "zero_grad(); torch.no_grad()(net)(torch.randn(8, 4));") + EVAL,
    "a mean of random results": net("nn.functional.dropout(self.fc(x), 0.3)") + EVAL.replace(
        "net(torch.randn(8, 4))", "sum(net(x) for x in [torch.randn(8, 4)] * 8)"),
    "a module": SMALL.replace("DROPOUT", "self.drop(self.fc(x))").replace(
        "nn.Linear(4, 4)", "nn.Linear(4, 4); self.drop = nn.Dropout(0.3)") + TRAIN + EVAL,
    "Monte-Carlo dropout": net("nn.functional.dropout(self.fc(x), 0.3)") + "net.eval()\nx = torch.randn(8, 4)\n"
        "with torch.no_grad():\n    print(torch.stack([net(x) for _ in range(5)]).std(0))\n",
    "the noise of a denoising model": SMALL.replace("DROPOUT", "self.fc(x)")
        + "def corrupt(x):\n    return nn.functional.dropout(x, 0.3)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor i in range(4):\n    net.train(); x = torch.rand(8, 4)\n"
        "    opt.zero_grad(); nn.functional.mse_loss(net(corrupt(x)), x).backward(); opt.step()\n"
        "net.eval()\nwith torch.no_grad():\n    print(nn.functional.mse_loss(net(corrupt(x)), x))\n",
    "samples in one batch": net("nn.functional.dropout(self.fc(x), 0.3)") + EVAL.replace(
        "net(torch.randn(8, 4)).mean()", "net(torch.randn(8, 4).repeat(20, 1)).view(20, 8, 4).mean(0)"),
    "no dropout at all": net("nn.functional.dropout(self.fc(x), 0)") + EVAL,
    "a program that never evaluates": net("nn.functional.dropout(self.fc(x), 0.3)"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "text"), WRONG.values(), ids=WRONG)
def test_dropout_that_eval_does_not_reach_is_named(tmp_path: Path, body: str, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_dropout_with_a_mode_is_left_alone(tmp_path: Path, body: str) -> None:
    assert not [each for each in sentences(tmp_path, body) if WORDS in each.text]
