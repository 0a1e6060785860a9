"""Checks the sentence about gradients that a line sets to zero in part, while weight decay moves the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Linear(4, 4)
kept = torch.rand(4, 4) > 0.5
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01)
for _ in range(6):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    net.weight.grad[kept] = 0.0  #!
    opt.step()
"""
LINE = "net.weight.grad[kept] = 0.0  #!"
WRONG = {
    "items": NET,
    "filled": NET.replace(LINE, "net.weight.grad.masked_fill_(kept, 0)  #!"),
    "by a product": NET.replace(LINE, "net.weight.grad.mul_((~kept).float())  #!"),
    "decoupled": NET.replace("optim.Adam", "optim.AdamW"),
    "by the numbers of tasks": NET.replace("kept = torch.rand(4, 4) > 0.5", (
        "owner = torch.full((4, 4), 9)\nowner[torch.rand(4, 4) > 0.5] = 0")).replace("[kept]", "[owner < 1]"),
    "of some of two": NET.replace("kept =", "free = torch.ones(4) > 0\nkept =").replace(LINE, (
        "for p, kept_ in ((net.weight, ~kept), (net.bias, free)):\n        p.grad.mul_(kept_)  #!")),
}  # fmt: skip
PACK = """\
net = nn.Linear(4, 4)
owner = torch.zeros(4, 4, dtype=torch.long)
class Packer:
    def fit(self, rounds):
        opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01)
        for _ in range(rounds):
            opt.zero_grad()
            net(torch.randn(8, 4)).square().mean().backward()
            net.weight.grad[owner != self.code] = 0.0  #!
            opt.step()
    @torch.no_grad()
    def prune(self, task):
        owner[(owner == 0) & (torch.rand(4, 4) > 0.5)] = task
        net.weight[owner == 0] = 0.0
packer = Packer()
for task in range(1, 4):
    with torch.no_grad(): net.weight[owner == 0] = 0.1 * torch.randn(int((owner == 0).sum()))
    packer.code = 0
    packer.fit(12)
    packer.prune(task)
    packer.code = task
    packer.fit(8)
"""
SET = "net.weight.grad[owner != self.code] = 0.0"
WRONG |= {
    "owners of shares": PACK,
    "owners, by a product": PACK.replace(SET, "net.weight.grad.mul_((owner == self.code).float())"),
    "owners, and where": PACK.replace(SET, (
        "net.weight.grad = torch.where(owner == self.code, net.weight.grad, torch.zeros(()))")),
    "owners in a dict, and clones": PACK.replace("owner = ", "owners = {'a': torch.zeros(4, 4, dtype=torch.long)}\n"
        "owner = owners['a']  # ").replace(SET, "net.weight.grad *= owners['a'].eq(self.code)"),
}  # fmt: skip
FREED = PACK.replace(
    "        owner[(owner == 0) & (torch.rand(4, 4) > 0.5)] = task\n        net.weight[owner == 0] = 0.0\n",
    """\
        drop = (owner == task) & (torch.rand(4, 4) > 0.5)
        net.weight[drop] = 0.0
        owner[drop] = 0
""",
).replace("packer.code = 0", "owner[owner == 0] = task; packer.code = task")
PHASES = FREED.replace(
    "        for _ in range(rounds)", ("        frozen = ~(owner == self.code)\n        for _ in range(rounds)")
).replace("owner != self.code", "frozen")
DRAWN = "    with torch.no_grad(): net.weight[owner == 0] = 0.1 * torch.randn(int((owner == 0).sum()))\n"
WRONG |= {
    "parts that a task drops and gives back": FREED,
    "dropped parts that the next task trains from zero": FREED.replace(DRAWN, ""),
    "dropped by a fill": FREED.replace("net.weight[drop] = 0.0", "net.weight.masked_fill_(drop, 0.0)"),
    "dropped by the opposite": FREED.replace("drop = (", "keep = ~(").replace("task) & (", "task) | ~(").replace(
        "net.weight[drop] = 0.0", "net.weight.mul_(keep)").replace("owner[drop]", "owner[~keep]"),
    "free parts with a negative number": FREED.replace("owner == 0", "owner == FREE").replace(
        "owner[drop] = 0", "owner[drop] = FREE").replace("owner = torch.zeros(4, 4, dtype=torch.long)", (
        "FREE = -1\nowner = torch.full((4, 4), FREE)")),
    "a mask for each phase": PHASES,
}  # fmt: skip
OWNED = PACK.replace("  #!", "")
PLAIN = NET.replace("  #!", "")
RIGHT = {
    "a mask of the weights as well": PLAIN
    + "    with torch.no_grad(): net.weight.mul_((~kept).float())\n",
    "values that are rounded again": PLAIN + (
        "    with torch.no_grad(): net.weight.copy_(torch.where(kept, (net.weight * 16).round() / 16, net.weight))\n"),
    "no decay": PLAIN.replace(", weight_decay=0.01", ""),
    "parts that are zero": PLAIN.replace("    opt.step()", "    opt.step()\n    net.weight.data.mul_(~kept)"),
    "put back": PLAIN.replace("    opt.zero_grad()", "    opt.zero_grad()\n    old = net.weight.data.clone()").replace(
        "    opt.step()", "    opt.step()\n    net.weight.data[kept] = old[kept]"),
    "scaled": PLAIN.replace("net.weight.grad[kept] = 0.0", "net.weight.grad[kept] *= 0.5"),
    "numbers that are not finite": PLAIN.replace("[kept] = 0.0", "[~torch.isfinite(net.weight.grad)] = 0.0"),
    "small ones": PLAIN.replace("[kept] = 0.0", "[net.weight.grad.abs() < 0.01] = 0.0"),
    "dropout of gradients": PLAIN.replace("net.weight.grad[kept] = 0.0", (
        "net.weight.grad.mul_(torch.rand(4, 4) > 0.5)")),
    "a number for all": PLAIN.replace("net.weight.grad[kept] = 0.0", "net.weight.grad.mul_(net.bias.sum() < 9)"),
    "all of it": PLAIN.replace("net.weight.grad[kept] = 0.0", "net.bias.grad.zero_()"),
    "parts that were set to zero before": PLAIN.replace("opt = ", "net.weight.data[kept] = 0.0\nopt = "),
    "a triangle with a diagonal": PLAIN.replace("torch.rand(4, 4) > 0.5", "torch.ones(4, 4).triu(1) > 0").replace(
        "opt = ", "net.weight = nn.Parameter(torch.randn(4, 4).tril() * 0.1 + torch.eye(4))\nopt = "),
    "a mask without a True": PLAIN.replace("torch.rand(4, 4) > 0.5", "torch.zeros(4, 4) > 0"),
    "weights that are read under the mask": PLAIN.replace("net(torch.randn(8, 4))", (
        "nn.functional.linear(torch.randn(8, 4), net.weight * ~kept)")),
    "put back now and then": PLAIN.replace("opt = ", "old = net.weight.detach().clone()\nopt = ").replace("range(6)", (
        "range(12)")) + "    if _ % 6 == 5:\n        with torch.no_grad(): net.weight[kept] = old[kept]\n",
    "other parts in turn": PLAIN.replace("[kept]", "[torch.arange(4) % 2 == _ % 2]"),
    "large weights": PLAIN.replace("[kept]", "[net.weight.detach().abs() > 0.3]"),
    "one of two masks in turn": PLAIN.replace("kept =", "kept = torch.rand(2, 4, 4) > 0.5\nother =").replace(
        "[kept]", "[kept[_ % 2]]"),
    "a rate of 0": PLAIN.replace("lr=0.01", "lr=0.0"),
    "a group without decay": PLAIN.replace("net.parameters(), lr=0.01, weight_decay=0.01", (
        "[{'params': [net.weight], 'weight_decay': 0.0}, {'params': [net.bias]}], lr=0.01, weight_decay=0.01")),
    "owners without decay": OWNED.replace(", weight_decay=0.01", ""),
    "owners whose shares are put back": OWNED.replace("owner = ", "old = net.weight.detach().clone()\nowner = ")
    .replace("        owner[(", "        net.weight[owner > 0] = old[owner > 0]\n        owner[(")
    .replace("packer.code = 0", "packer.code = 0; old = net.weight.detach().clone()"),
    "blocks in turn": OWNED.replace("owner != self.code", "owner != _ % 3").replace(
        "torch.zeros(4, 4, dtype=torch.long)", "torch.randint(3, (4, 4))").replace("    packer.prune(task)\n", ""),
    "dead parts, of which some grow again": OWNED.replace("owner != self.code", "owner == 0").replace(
        "net.weight[owner == 0] = 0.1 * torch.randn(int((owner == 0).sum()))", (
        "net.weight[owner == 2] = 0.1 * torch.randn(int((owner == 2).sum()))")),
}  # fmt: skip
LENT, DENSE = FREED.replace("  #!", ""), "dense, sparse and dense again"
KEPT = LENT.replace(
    "    packer.fit(12)", "    old, mine = net.weight.detach().clone(), owner == task\n    packer.fit(12)"
)
RIGHT |= {
    DENSE: """\
net = nn.Linear(4, 4)
alive = torch.ones(4, 4, dtype=torch.long)
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01)
def fit(rounds):
    for _ in range(rounds):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        net.weight.grad[alive != 1] = 0.0
        opt.step()
for cycle in range(1, 4):
    fit(12)
    with torch.no_grad():
        drop = torch.rand(4, 4) > 0.5
        alive[drop] = 0
        net.weight[drop] = 0.0
    opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01)
    fit(8)
    with torch.no_grad(): net.weight[alive == 0] = 0.1 * torch.randn(int((alive == 0).sum()))
    alive[alive == 0] = 1
""",
    "lent parts without decay": LENT.replace(", weight_decay=0.01", ""),
    "lent parts, put back after a fit": KEPT.replace("    packer.prune(task)", (
        "    with torch.no_grad(): net.weight[~mine] = old[~mine]\n    packer.prune(task)")),
    "lent parts, put back by a choice": KEPT.replace("    packer.prune(task)", (
        "    net.weight.data = torch.where(mine, net.weight.data, old)\n    packer.prune(task)")),
    "lent parts, put back by a copy": KEPT.replace("    packer.prune(task)", (
        "    with torch.no_grad(): net.weight.copy_(torch.where(mine, net.weight, old))\n    packer.prune(task)")),
    "dropped parts that stay zero": LENT.replace(DRAWN, "").replace("owner[owner == 0] = task; ", "").replace(
        "torch.zeros(4, 4, dtype=torch.long)", "torch.randint(1, 4, (4, 4))"),
    "masks of phases in turn, computed again": PLAIN.replace("kept =", "low = torch.rand(4, 4)\nkept =").replace(
        "[kept]", "[frozen]").replace("range(6):", (
        "range(16):\n    if _ % 4 == 0: frozen = low < 0.5 if _ % 8 == 0 else low >= 0.5")),
    "masks of phases in turn": PLAIN.replace("kept =", "low = torch.rand(4, 4)\nboth = low < 0.5, low >= 0.5\nkept =")
    .replace("range(6)", "range(16)").replace("[kept]", "[both[_ // 4 % 2]]"),
}  # fmt: skip
RIGHT |= {
    "dense again, with zeros by number": RIGHT[DENSE].replace("weight[drop] = 0.0", "weight[alive == 0] = 0.0"),
    "dense again, with a product": RIGHT[DENSE].replace("[alive != 1] = 0.0", ".mul_(alive > 0)"),
    "dense again, with the number of the cycle": RIGHT[DENSE].replace("alive == 0] = 1", "alive == 0] = cycle").replace(
        "alive != 1", "alive == 0"),
    "dense again, with a number for a call": RIGHT[DENSE].replace("fit(rounds)", "fit(rounds, code=1)").replace(
        "alive != 1", "alive != code"),
    "dense again, with a mask for each phase": RIGHT[DENSE].replace("    for _ in range(rounds)", (
        "    dead = alive != 1\n    for _ in range(rounds)")).replace("[alive != 1]", "[dead]"),
}  # fmt: skip
WORDS = "sets parts of the gradients"


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_decay_all_the_same_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "gradients of `net.weight` to zero" in found.text
    assert "its `weight_decay` is 0.01" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_parts_that_stay_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
