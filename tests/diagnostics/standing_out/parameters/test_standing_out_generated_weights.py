"""Checks the sentence about computed values that a line writes into parameters without their graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
head, trunk, hyper = nn.Linear(4, 1), nn.Linear(4, 4), nn.Linear(3, 5)
own, rest = list(head.parameters()), [*trunk.parameters(), *hyper.parameters()]
opt = torch.optim.SGD([*own, *rest], lr=0.05)
x, y, code = torch.randn(16, 4), torch.randn(16, 1), torch.randn(3)
for step in range(8):
    theta = hyper(code)
"""
WRITE = "    nn.utils.vector_to_parameters(theta, head.parameters())  #!\n"
COPY = "    with torch.no_grad():\n        head.weight.copy_(theta[:4].view(1, 4))  #!\n"
LOSS = "    loss = (head(trunk(x)) - y).square().mean() + 0.01 * theta.square().sum()\n    opt.zero_grad()\n"
STEP = "    loss.backward()\n    opt.step()\n"
REST = LOSS + STEP
CAST = NET.replace("opt = ", "real = nn.Parameter(torch.randn(4, 4))\nopt = ").replace("*own, *rest", "real, *rest")
PASSED_ON = "    theta.backward(torch.cat([p.grad.flatten() for p in own]))\n    opt.step()\n"
MODELS = """\
one, two, both = nn.Linear(4, 1), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.05)
x, y = torch.randn(16, 4), torch.randn(16, 1)
for step in range(8):
    for mean, a, b in zip(both.parameters(), one.parameters(), two.parameters()):
        mean.data = (a + b) / 2
    loss = sum((model(x) - y).square().mean() for model in (one, two))
    loss = loss + sum((p - q).square().sum() for m in (one, two) for p, q in zip(m.parameters(), both.parameters()))
    opt.zero_grad()
"""
WRONG = {
    "a vector with a graph": NET + WRITE + REST,
    "the optimizer holds the generator alone": NET.replace("*own, *rest", "*rest") + WRITE + REST,
    "assigned": NET + "    head.weight.data = theta[:4].view(1, 4)  #!\n" + REST,
    "copied into data": NET + "    head.weight.data.copy_(theta[:4].view(1, 4))  #!\n" + REST,
    "copied while gradients are off": NET + COPY + REST,
    "loaded": NET + "    head.load_state_dict({'weight': theta[:4].view(1, 4), 'bias': theta[4:]})  #!\n" + REST,
    "a table of codes that the trunk uses too": NET.replace(
        "hyper = nn.Linear(4, 1), nn.Linear(4, 4), nn", "hyper, table = nn.Linear(4, 1), nn.Linear(4, 4), nn"
    ).replace("(3, 5)\n", "(4, 5), nn.Embedding(3, 4)\n").replace("*trunk.", "*table.parameters(), *trunk.")
    .replace("hyper(code)", "hyper(table(torch.tensor(step % 3)))") + WRITE
    + LOSS.replace("trunk(x)", "trunk(x + table(torch.tensor(step % 3)))") + STEP,
}  # fmt: skip
RIGHT = {
    "called with the values": NET.replace("*own, *rest", "*rest")
    + LOSS.replace(
        "head(trunk(x))",
        "torch.func.functional_call(head, {'weight': theta[:4].view(1, 4), 'bias': theta[4:]}, (trunk(x),))",
    )
    + STEP,
    "detached": NET + WRITE.replace("theta,", "theta.detach(),") + REST,
    "generated while gradients are off": NET
    + "    with torch.no_grad():\n        nn.utils.vector_to_parameters(hyper(code), head.parameters())\n"
    + REST,
    "written once": NET.replace("for step", "nn.utils.vector_to_parameters(hyper(code), own)\nfor step") + REST,
    "the gradient is passed on": NET.replace("*own, *rest", "*rest")
    + WRITE
    + LOSS.replace("opt.zero_grad()", "opt.zero_grad()\n    head.zero_grad()")
    + "    loss.backward(retain_graph=True)\n"
    + PASSED_ON,
    "hooks pass the gradient on": NET.replace("*own, *rest", "*rest").replace(
        "for step",
        "def pass_on(g):\n    theta.backward(torch.cat([g[0], 0 * g[0, :1]]), retain_graph=True)\n"
        "head.weight.register_hook(pass_on)\nfor step",
    )
    + "    head.weight.data = theta[:4].view(1, 4)\n"
    + REST.replace("backward()", "backward(retain_graph=True)"),
    "a start that own steps improve": NET
    + WRITE
    + "    for inner in range(3):\n        theta = hyper(code)\n"
    + (LOSS + STEP)
    .replace("    ", "        ")
    .replace("theta.", "(theta - torch.cat([p.data.flatten() for p in own]))."),
    "values of real weights": CAST
    + "    theta = (real @ real.T).softmax(1)\n    trunk.weight.data.copy_(theta)\n"
    + LOSS
    + "    loss.backward()\n    real.grad += trunk.weight.grad\n    opt.step()\n",
    "signs of real weights": CAST
    + "    trunk.weight.data.copy_(real.sign() * real.abs().mean())\n"
    + LOSS
    + "    loss = loss + 0.01 * real.square().sum()\n    loss.backward()\n    real.grad += trunk.weight.grad\n"
    "    opt.step()\n",
    "a step with a graph": NET + REST + "    near = torch.eye(4) + 0.1 * trunk.weight\n"
    "    head.weight.data = head.weight - 0.01 * head.weight.grad @ near\n",
    "the average of models": MODELS + STEP,
    "a copy that stops gradients": NET.replace("*own, *rest", "*rest")
    + WRITE
    + LOSS.replace("head(", "nn.functional.linear(trunk(x), theta[:4].view(1, 4), theta[4:]) + head(")
    + STEP,
}
WORDS = "does not reach the former"


@pytest.mark.parametrize("name", WRONG)
def test_generated_values_without_a_graph_are_named(tmp_path: Path, name: str) -> None:
    said = sentences(tmp_path, WRONG[name])
    (found,) = (each for each in said if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "from `hyper.weight`" in found.text or "from `table.weight`" in found.text
    assert "into `head.weight`" in found.text
    assert not any("before anything reads what the steps" in each.text for each in said)


RIGHT["the solution for a head"] = """\
x = torch.randn(128, 4); y = torch.sin(x.sum(1, keepdim=True))
features = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh())
head = nn.Linear(8, 1, bias=False)
opt = torch.optim.Adam(features.parameters(), lr=1e-2)
for step in range(40):
    opt.zero_grad()
    f = features(x)
    head.weight.data.copy_(torch.linalg.solve(f.T @ f + 1e-2 * torch.eye(8), f.T @ y).T)
    loss = (head(f) - y).pow(2).sum() + 1e-2 * head.weight.pow(2).sum()
    loss.backward()
    opt.step()
print(float(loss))
"""
RIGHT["an average of features"] = """\
class Quantizer(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(k, d))
        self.register_buffer("counts", torch.ones(k))
    def forward(self, z):
        index = torch.cdist(z, self.codebook).argmin(1)
        onehot = nn.functional.one_hot(index, len(self.codebook)).float()
        if self.training:
            n = onehot.sum(0)
            self.counts.mul_(0.9).add_(0.1 * n)
            means = (onehot.T @ z) / n.clamp_min(1)[:, None]
            new = torch.where(n[:, None] > 0, 0.9 * self.codebook.data + 0.1 * means, self.codebook.data)
            self.codebook.data.copy_(new)
        q = self.codebook[index]
        return z + (q - z).detach(), nn.functional.mse_loss(z, q)
enc, quant, dec = nn.Linear(8, 4), Quantizer(16, 4), nn.Linear(4, 8)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = torch.randn(64, 8)
for step in range(30):
    q, commit = quant(enc(x))
    loss = nn.functional.mse_loss(dec(q), x) + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss))
"""


@pytest.mark.parametrize("name", RIGHT)
def test_other_written_values_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
