"""Checks the sentences about averages that go the wrong way, copies that nothing reads, and copies at each step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
import copy
import torch.nn.functional as F
x, reward, after = torch.randn(32, 4), torch.randn(32), torch.randn(32, 4)
action = torch.randint(0, 2, (32, 1))
q = nn.Linear(4, 2)
target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=0.01)
def step(follower):
    with torch.no_grad():
        goal = reward + 0.9 * follower(after).max(1).values
    loss = F.mse_loss(q(x).gather(1, action).squeeze(1), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = "for k in range(8):\n    step(FOLLOWER)\n"
REVERSED = HEAD + LOOP.replace("FOLLOWER", "target") + (
    "    with torch.no_grad():\n        for a, b in zip(q.parameters(), target.parameters()):\n"
    "            a.mul_(0.1).add_(b, alpha=0.9)  #!\n"
)  # fmt: skip
UNREAD = HEAD + LOOP.replace("FOLLOWER", "q") + "    if k % 2:\n        target.load_state_dict(q.state_dict())  #!\n"
EACH_STEP = HEAD + LOOP.replace("FOLLOWER", "target") + "    target.load_state_dict(q.state_dict())  #!\n"
BLEND = (
    HEAD
    + "def blend(a, b, share=0.1):\n    return {k: (1 - share) * v + share * b[k] for k, v in a.items()}\n"
    + LOOP.replace("FOLLOWER", "target")
)
AVERAGED = (
    HEAD + LOOP.replace("FOLLOWER", "target")
    + "    with torch.no_grad():\n"
    + "        torch._foreach_lerp_(list(target.parameters()), list(q.parameters()), 0.1)\n"
)  # fmt: skip
WRONG = {
    "a blend that is loaded the wrong way": (
        BLEND + "    q.load_state_dict(blend(q.state_dict(), target.state_dict()))  #!\n",
        "moves `q.weight` and `q.bias` towards `target.weight` and",
    ),
    "a load of everything after an average": (
        AVERAGED + "    target.load_state_dict(q.state_dict())  #!\n",
        "after each of 8 steps: nothing of earlier steps stays in them",
    ),
    "an average that goes the wrong way": (REVERSED, "moves `q.weight` and `q.bias` towards `target.weight` and"),
    "the same by lerp_": (
        REVERSED.replace("a.mul_(0.1).add_(b, alpha=0.9)", "a.lerp_(b, 0.9)"),
        "in 8 of its runs, and nothing changes them",
    ),
    "a target that nothing reads": (UNREAD, "are updated 4 times, and no other line reads them then"),
    "a target that is equal at each step": (EACH_STEP, "after each of 8 steps: nothing of earlier steps stays in them"),
}
RIGHT = {
    "a blend that is loaded": BLEND + "    target.load_state_dict(blend(target.state_dict(), q.state_dict()))\n",
    "an average in a dict that is loaded": BLEND.replace("for k in", "kept = copy.deepcopy(q.state_dict())\nfor k in")
    + "    kept = blend(kept, q.state_dict())\n    target.load_state_dict(kept)\n",
    "values from before the step": EACH_STEP.replace("    step(", "    kept = copy.deepcopy(q.state_dict()); step(")
    .replace("(q.state_dict())  #!", "(kept)"),
    "noise around the weights": EACH_STEP + "    with torch.no_grad():\n        for p in target.parameters():\n"
    "            p.lerp_(torch.randn_like(p), 0.1)\n",
    "an average that is read before a load": AVERAGED + "    target(x)\n    target.load_state_dict(q.state_dict())\n",
    "an average at some steps": AVERAGED,
    "an average": REVERSED.replace("a.mul_(0.1).add_(b, alpha=0.9)", "b.mul_(0.9).add_(a, alpha=0.1)"),
    "both move": REVERSED + "            b.lerp_(a, 0.5)\n",
    "a target that the loss reads": UNREAD.replace("step(q)", "step(target)"),
    "a target that is read at the end": UNREAD + "target(x)\n",
    "a target of which a part is read": UNREAD + "target.weight.sum()\n",
    "a target whose state is kept": UNREAD + "kept = target.state_dict()\n",
    "a copy of the best so far": EACH_STEP.replace(
        "    target.load", "    if k >= 0:\n        target.load"
    ),
    "a copy at some steps": EACH_STEP.replace("    target.load", "    if k % 2:\n        target.load"),
    "one copy before several steps": EACH_STEP.replace("    target.load", "    step(target); target.load"),
}  # fmt: skip
WORKER = """\
import torch
net, worker = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(8):
    x = torch.randn(8, 4)
    ROUND
    opt.step()
    worker.load_state_dict(net.state_dict())
"""
RIGHT |= {
    "a worker with gradients of its own": WORKER.replace("ROUND", """\
worker.zero_grad()
    worker(x).square().mean().backward()
    for a, b in zip(worker.parameters(), net.parameters()):
        b.grad = a.grad"""),
    "a policy whose actions are drawn": WORKER.replace("ROUND", """\
with torch.no_grad():
        policy = torch.distributions.Categorical(logits=worker(x))
        action = policy.sample()
        old = policy.log_prob(action)
    new = torch.distributions.Categorical(logits=net(x)).log_prob(action)
    opt.zero_grad()
    (-(new - old).exp() * x[:, 0]).mean().backward()"""),
    "held near to the first values": HEAD + LOOP.replace("FOLLOWER", "q") + (
        "    with torch.no_grad():\n        for a, b in zip(q.parameters(), target.parameters()):\n"
        "            a.lerp_(b, 0.01)\n"),
}  # fmt: skip
WORDS = ("towards", "no other line reads", "nothing of earlier steps")


@pytest.mark.parametrize("name", WRONG)
def test_they_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_usual_copies_and_averages_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
