"""Checks the sentence about rows of gradients that are sums of the passes so far."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ROWS = """\
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def fit(x, y):
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    opt.step()
def flat():
    return torch.cat([p.grad.flatten() for p in net.parameters()])
def features(x):
    net.zero_grad()
    out, rows = net(x).squeeze(1), []
    for each in out:
        each.backward(retain_graph=True)  #!
        rows.append(flat())
    return torch.stack(rows)
for _ in range(3):
    x, y = torch.randn(5, 3), torch.randn(5, 1)
    rows = features(x)
    print((rows @ rows.T).diagonal().sum().item())
    fit(x, y)
"""
APPENDED = "rows.append(flat())"
WRONG = {
    "a vector of all parameters": ROWS,
    "by parameters_to_vector": ROWS.replace("flat()", "nn.utils.parameters_to_vector(p.grad for p in net.parameters())")
    .replace("def nn.utils.parameters_to_vector(p.grad for p in net.parameters())", "def flat()"),
    "copies of one parameter": ROWS.replace(APPENDED, "rows.append(net[0].bias.grad.clone())"),
    "scaled": ROWS.replace("torch.stack(rows)", "torch.stack(rows) / 2.0"),
    "norms": ROWS.replace(APPENDED, "rows.append(flat().norm())").replace("(rows @ rows.T)", "torch.outer(rows, rows)"),
    "norms by hand": ROWS.replace(APPENDED, "rows.append(sum(p.grad.pow(2).sum() for p in net.parameters()).sqrt())")
    .replace("(rows @ rows.T)", "torch.outer(rows, rows)"),
    "zeroed at the end": ROWS.replace("    net.zero_grad()\n", "").replace(
        "    return torch.stack(rows)", "    net.zero_grad()\n    return torch.stack(rows)"),
    "gradients of tasks, combined by hand": ROWS.replace("    fit(x, y)", (
        "    for p, g in zip(net.parameters(), rows.mean(0).split([12, 4, 4, 1])):\n        p.grad = g.view_as(p)\n"
        "    opt.step()")).replace(
        "    return torch.stack(rows)", "    joined = torch.stack(rows)\n    net.zero_grad()\n    return joined"),
}  # fmt: skip
ZEROED = ROWS.replace("        each.backward", "        net.zero_grad()\n        each.backward")
STEPPED = ROWS.replace("    return torch.stack(rows)", "    opt.step()\n    return torch.stack(rows)")
RIGHT = {
    "zeroed for each": ZEROED,
    "zeroed after each": ROWS.replace(APPENDED, APPENDED + "; net.zero_grad()"),
    "by autograd.grad": ROWS.replace("        each.backward(retain_graph=True)  #!\n", "").replace(
        APPENDED, "g = torch.autograd.grad(each, net.parameters(), retain_graph=True)\n"
        "        rows.append(torch.cat([p.flatten() for p in g]))"),
    "differences in the loop": ROWS.replace("    for each", "    last = torch.zeros(21)\n    for each").replace(
        APPENDED, "now = flat(); rows.append(now - last); last = now"),
    "differences of the rows": ROWS.replace(
        "return torch.stack(rows)", "rows = torch.stack(rows)\n    return rows[1:] - rows[:-1]"),
    "differences by diff": ROWS.replace("return torch.stack(rows)", (
        "return torch.stack(rows).diff(dim=0, prepend=torch.zeros(1, 21))")),
    "an array": ROWS.replace("    print((rows", "    array = rows.numpy()\n    print((rows"),
    "means so far": ROWS.replace("for each in out", "for k, each in enumerate(out)").replace(
        APPENDED, "rows.append(flat() / (k + 1))"),
    "means so far, divided at the end": ROWS.replace(
        "torch.stack(rows)", "torch.stack(rows) / torch.arange(1, 6).unsqueeze(1)"),
    "compared with the last": ROWS.replace("    return torch.stack(rows)", (
        "    rows = torch.stack(rows)\n    print(torch.cosine_similarity(rows, rows[-1:], dim=1))\n    return rows")),
    "norms of an accumulation": STEPPED.replace(APPENDED, "rows.append(flat().norm())").replace(
        "(rows @ rows.T)", "torch.outer(rows, rows)"),
    "norms on the way to a whole gradient": ROWS.replace(APPENDED, "rows.append(flat().norm())").replace(
        "(rows @ rows.T)", "torch.outer(rows, rows)").replace(
        "    return torch.stack", "    whole = [p.grad.clone() / 5 for p in net.parameters()]\n    return torch.stack"),
    "named as sums": ROWS.replace("torch.stack(rows)", "torch.stack(partial)").replace(
        ", rows = net", ", partial = net").replace(APPENDED, "partial.append(flat())"),
}  # fmt: skip
WORDS = "from the second on, each is a sum"


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_sums_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "after each of 5 passes" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


RIGHT["norms by the size of a sample"] = """\
x = torch.randn(96, 6); y = x @ torch.randn(6, 1) + torch.randn(96, 1)
model = nn.Linear(6, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
def norm_by_size(batches):
    model.zero_grad()
    norms, sizes, seen = [], [], 0
    for bx, by in batches:
        nn.functional.mse_loss(model(bx), by, reduction="sum").backward()
        seen += len(bx)
        norms.append(model.weight.grad.norm())
        sizes.append(seen)
    model.zero_grad()
    return torch.stack(norms) / torch.tensor(sizes)
for epoch in range(5):
    for bx, by in zip(x.split(12), y.split(12)):
        opt.zero_grad()
        nn.functional.mse_loss(model(bx), by).backward()
        opt.step()
    print(epoch, norm_by_size(list(zip(x.split(12), y.split(12)))))
"""
RIGHT["differences of shifted rows"] = """\
x = torch.randn(64, 5); y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def fisher(n):
    model.zero_grad()
    shots = []
    for i in range(n):
        nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        shots.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    model.zero_grad()
    shots = torch.stack(shots)
    before = torch.cat([torch.zeros(1, shots.shape[1]), shots[:-1]])
    return (shots - before).pow(2).mean(0)
for epoch in range(10):
    opt.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    opt.step()
print(fisher(8))
"""


@pytest.mark.parametrize("name", RIGHT)
def test_other_rows_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
