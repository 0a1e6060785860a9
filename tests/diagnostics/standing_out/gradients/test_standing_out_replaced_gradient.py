"""Checks the sentence about lines that set a gradient several times for one step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TASKS = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    for _ in range(5):
        loss = net(torch.randn(8, 3)).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()))
        for p, g in zip(net.parameters(), grads):
            p.grad = g / 5  #!
    opt.step()
"""
CLIENTS = """\
import copy
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=1.0)
def fit(model):
    local = copy.deepcopy(model)
    inner = torch.optim.SGD(local.parameters(), lr=0.1)
    inner.zero_grad()
    local(torch.randn(8, 3)).square().mean().backward()
    inner.step()
    return local
for _ in range(4):
    opt.zero_grad()
    total = [torch.zeros_like(p) for p in net.parameters()]
    other = net
    for _ in range(5):
        other = fit(net)
        for p, q, t in zip(net.parameters(), other.parameters(), total):
            p.grad = (p.detach() - q.detach()) / 5  #!
    opt.step()
"""
DELTA = "p.grad = (p.detach() - q.detach()) / 5  #!"
VECTOR = CLIENTS.replace(DELTA, "p.grad = (theirs[:p.numel()].view_as(p) - p).neg().detach()  #!").replace(
    "        for p, q", "        theirs = nn.utils.parameters_to_vector(other.parameters())\n        for p, q"
)
SET = "p.grad = g / 5  #!"
RIGHT = {
    "all of them go to a file": "import io\n" + TASKS.replace(SET, (
        "p.grad = g\n            torch.save(g, io.BytesIO())")),
    "all of them are shown later": "seen = []\n" + TASKS.replace(SET, "p.grad = g").replace(
        "        for p, g", "        seen.append(grads)\n        for p, g") + "print(seen)\n",
    "a running sum": TASKS.replace("    for _ in range(5)", "    total = [0, 0]\n    for _ in range(5)").replace(
        "        for p, g in zip(net.parameters(), grads)", "        total = [t + g for t, g in zip(total, grads)]\n"
        "        for p, g in zip(net.parameters(), total)"),
    "one memory": TASKS.replace("    for _ in range(5)", "    total = [torch.zeros_like(p) for p in net.parameters()]\n"
        "    for _ in range(5)").replace("        for p, g in zip(net.parameters(), grads)", (
        "        for t, g in zip(total, grads):\n            t += g\n"
        "        for p, g in zip(net.parameters(), total)")).replace(SET, "p.grad = g.view_as(p)"),
    "the gradient of the worst": TASKS.replace("    for _ in range(5)", (
        "    worst = -1.0\n    for _ in range(5)")).replace("        grads = ", (
        "        if loss.item() > worst:\n            worst = loss.item()\n            grads = ")).replace(
        "        for p, g", "            for p, g").replace("    " + SET, "        " + SET),
    "added": TASKS.replace(SET, "p.grad = g / 5 if p.grad is None else p.grad + g / 5"),
    "one for a step": TASKS.replace("    opt.step()", "        opt.step()"),
    "read before the next": TASKS.replace("        for p, g", (
        "        print([p.grad.norm() for p in net.parameters() if p.grad is not None], end='')\n        for p, g")),
    "kept before the next": TASKS.replace(SET, "p.grad = g / 5\n            kept = g.norm()").replace(
        "range(5)", "range(1)"),
    "a backward pass and a mask": TASKS.replace("grads = torch.autograd.grad(loss, list(net.parameters()))", (
        "loss.backward()\n        grads = [p.grad * 0.5 for p in net.parameters()]")),
    "the changes of all clients in one": CLIENTS.replace(DELTA, "t += (p.detach() - q.detach()) / 5; p.grad = t"),
    "one client after the other": CLIENTS.replace("fit(net)", "fit(other)"),
}  # fmt: skip
CLIPPED = TASKS.replace("    opt.step()", "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()")
DIVIDED = TASKS.replace("    opt.step()", "    for p in net.parameters():\n        p.grad = p.grad / 5\n    opt.step()")
HELPED = (
    TASKS.replace(
        "        for p, g in zip(net.parameters(), grads):\n            p.grad",
        ("        give(dict(zip('wb', grads)))\n"),
    )
    .replace(" = g / 5  #!\n", "")
    .replace(
        "for _ in range(4)",
        (
            "def give(grads):\n    for n, g in grads.items():\n        p = {'w': net.weight, 'b': net.bias}[n]\n"
            "        p.grad = g / 5  #!\nfor _ in range(4)"
        ),
    )
)
COPIED = CLIPPED.replace(
    "opt.zero_grad()", ("for p in net.parameters():\n        p.grad = torch.zeros_like(p)")
).replace(SET, "p.grad.copy_(g)  #!")
RIGHT |= {
    "all of them are copied into one, below": "kept = []\n" + CLIPPED.replace(SET, "p.grad = g.clone()").replace(
        "        for p, g", "        kept.append(grads)\n        for p, g").replace("    nn.utils", (
        "    for p, *gs in zip(net.parameters(), *kept):\n        p.grad.copy_(torch.stack(gs).mean(0))\n"
        "    kept.clear()\n    nn.utils")),
    "the sum of those set before": "kept = []\n" + CLIPPED.replace(SET, "p.grad = g").replace(
        "    nn.utils", "        kept.append([p.grad for p in net.parameters()])\n"
        "    for p, *gs in zip(net.parameters(), *kept):\n        p.grad = sum(gs)\n    kept.clear()\n    nn.utils"),
    "a sum that is copied": COPIED.replace("    for _ in range(5)", (
        "    total = [torch.zeros_like(p) for p in net.parameters()]\n    for _ in range(5)")).replace(
        "        for p, g in zip(net.parameters(), grads)", "        for t, g in zip(total, grads):\n"
        "            t += g\n        for p, g in zip(net.parameters(), total)"),
}  # fmt: skip
WORDS = "which uses only the last"


KEPT = "last = {}\n" + TASKS.replace("        for p, g", "        last['grads'] = grads\n        for p, g")


@pytest.mark.parametrize("body", [TASKS, CLIENTS, VECTOR, KEPT, CLIPPED, DIVIDED, HELPED, COPIED])
def test_a_gradient_that_is_set_for_each_task_is_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    name = "p.grad.copy_(g)" if body is COPIED else "p.grad = ..."
    assert f"`{name}` sets each gradient of `net.weight` and `net.bias` 5 times for a step" in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_a_gradient_that_is_used_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
