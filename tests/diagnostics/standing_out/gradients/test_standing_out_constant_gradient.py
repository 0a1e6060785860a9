"""Checks the sentence about learned weights of a loss that the loss uses as plain numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Linear(4, 2)
log_vars = nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([{"params": net.parameters()}, {"params": [log_vars], "lr": 0.05}], lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 2)
"""
TRAIN = """\
for step in range(8):
    errors = (net(x) - y).square().mean(0)
    loss = 0.0
    for task in range(2):
        weight = log_vars[task].neg().exp().item()  #!
        loss = loss + weight * errors[task] + log_vars[task]
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LINE = "        weight = log_vars[task].neg().exp().item()  #!\n"
FUNCTION = "def weight_of(task):\n    return float(torch.exp(-log_vars[task]))  #!\n\n"
WRONG = {
    "in the loop": NET + TRAIN,
    "in a function": NET + FUNCTION + TRAIN.replace(LINE, "").replace("weight *", "weight_of(task) *"),
    "the items of a loop": NET
    + TRAIN.replace("for task in range(2):", "for task, weight in enumerate((-log_vars).exp().tolist()):  #!")
    .replace(LINE, ""),
    "an argument of a function": NET
    + "def combined(errors, weights):\n    return sum(w * e for w, e in zip(weights, errors)) + log_vars.sum()\n"
    + "for step in range(8):\n    errors = (net(x) - y).square().mean(0)\n    opt.zero_grad()\n"
    + "    combined(errors, log_vars.neg().exp().tolist()).backward()  #!\n    opt.step()\n",
    "detached": NET + TRAIN.replace(".neg().exp().item()", ".detach().neg().exp()"),
    "computed while gradients are off": NET
    + TRAIN.replace("    loss", "    with torch.no_grad():\n        weights = (-log_vars).exp()  #!\n    loss", 1)
    .replace(LINE, "").replace("weight *", "weights[task] *"),
    "an array": NET + TRAIN.replace("log_vars[task].neg().exp().item()", "float(log_vars.detach().numpy()[task] + 1)"),
    "a list": NET
    + TRAIN.replace("    loss = 0.0\n", "    weights = log_vars.neg().exp().tolist()  #!\n    loss = 0.0\n")
    .replace(LINE, "").replace("weight *", "weights[task] *"),
}  # fmt: skip
HALVED = TRAIN.replace("+ log_vars[task]", "+ half * log_vars[task]").replace("for step", "half = 0.5\nfor step")
WRONG["a term with a factor"] = NET + HALVED
RIGHT = {
    "a tensor": NET + TRAIN.replace(".item()  #!", ""),
    "shown": NET + TRAIN.replace(".item()  #!", "\n        print(log_vars[task].exp().item())"),
    "shown in a loop": NET
    + TRAIN.replace(".item()  #!", "")
    + "    for weight, name in zip(log_vars.tolist(), 'ab'):\n        name *= 2\n        print(name, weight)\n",
    "shown with a constant gradient": """\
net, s = nn.Linear(4, 1), nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([*net.parameters(), s], lr=0.1)
for step in range(8):
    loss = net(torch.randn(16, 4)).square().mean() + s.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for at, value in enumerate(s.tolist()):
        place = at + 1
        print(f"{place} {value:.3f}")
""",
    "detached to be kept": NET
    + "seen = []\n"
    + TRAIN.replace(".item()  #!", "").replace(
        "    opt.step()", "    seen.append(log_vars.detach().clone())\n    opt.step()"
    ),
    "a bound that is detached": """\
net, bound = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), bound], lr=0.1)
for step in range(8):
    out = net(torch.randn(16, 4)).squeeze(1)
    miss = out - 0.1
    loss = out.square().mean() + (bound.detach() * miss).mean() - (bound * miss.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a median of single numbers, detached": """\
net, middle = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), middle], lr=0.1)
for step in range(8):
    out = net(torch.randn(1, 4)).squeeze()
    loss = (out - middle.detach() - 1).square() + (out.detach() - middle).abs()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "kept": NET + "seen = []\n" + TRAIN.replace(".item()  #!", "\n        seen.append(log_vars[task].exp().item())"),
    "the temperature of soft actor-critic": """\
actor, log_alpha = nn.Linear(4, 2), nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([{"params": actor.parameters()}, {"params": [log_alpha], "lr": 0.05}], lr=0.1)
for step in range(8):
    logits = actor(torch.randn(16, 4))
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    alpha = log_alpha.exp().item()
    loss = (logits[:, 0] - alpha * entropy).mean() + (log_alpha * (entropy - 0.5).detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a price of used columns": """\
net, gate, price = nn.Linear(4, 1), nn.Parameter(torch.full((4,), 2.0)), nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), gate, price], lr=0.001)
for step in range(8):
    used = int((gate.sigmoid() > 0.5).sum())
    over = used - 1
    loss = net(torch.randn(16, 4) * gate.sigmoid()).square().mean() + price.detach() * gate.sigmoid().mean()
    opt.zero_grad()
    (loss - price * over).backward()
    opt.step()
""",
    "a median of single numbers, as a number": """\
middle = nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([middle], lr=0.01)
for value in torch.rand(8) + 3:
    loss = (value - middle).abs()
    opt.zero_grad()
    loss.backward()
    opt.step()
    center = middle.item() + 1
""",
    "signs of gradients": """\
net, total = nn.Linear(4, 1), 0.0
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    loss = net(torch.randn(16, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.grad.sign_()
    opt.step()
    total += loss.item()
""",
    "a bias whose gradient is constant": """\
critic = nn.Linear(4, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
for step in range(8):
    loss = critic(torch.randn(16, 4)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if critic.bias.item() > 3:
        print("large")
""",
}
WORDS = "has the same norm"


@pytest.mark.parametrize("name", WRONG)
def test_a_learned_weight_that_is_a_number_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_number_that_is_shown_or_meant_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
