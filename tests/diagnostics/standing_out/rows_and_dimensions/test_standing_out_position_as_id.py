"""Checks the sentence about positions among some rows of a table that are used as ids of all its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
x = torch.randn(200, 4)
y = (x[:, 0] > 0).long()
order = torch.randperm(200)
measured, pool = order[:20], order[20:]

def fit(x, y):
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    return net

@torch.no_grad()
def score(net, x):
    probs = net(x).softmax(1)
    return -(probs * probs.log()).sum(1)

for _ in range(2):
    net = fit(x[measured], y[measured])
    picked = score(net, x[pool]).topk(10).indices
    measured = torch.cat([measured, picked])  #!
    keep = torch.ones(len(pool), dtype=torch.bool)
    keep[picked] = False
    pool = pool[keep]
fit(x[measured], y[measured])
"""
LOOP = "for _ in range(2):"
MASK = (
    BODY[: BODY.index(LOOP)]
    + """\
mask = torch.zeros(200, dtype=torch.bool)
mask[measured] = True
for _ in range(2):
    net = fit(x[mask], y[mask])
    pool = (~mask).nonzero().squeeze(1)
    picked = score(net, x[pool]).topk(10).indices
    mask[picked] = True  #!
"""
)
FITTEST = """\
rows = torch.randn(60, 3)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    fitness = -net(rows).squeeze(1).detach().abs()
    ids = torch.randperm(60)[:8]
    best = fitness[ids].topk(2).indices
    loss = net(rows[best]).square().mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PICK, JOIN = ".topk(10).indices", "measured = torch.cat([measured, picked])  #!"
JOINED = "measured = torch.cat([measured, pool[picked]])"
ENTROPY = "probs = net(x).softmax(1)\n    return -(probs * probs.log()).sum(1)"
MARGIN = "return top[:, 1] - top[:, 0]"
WRONG = {
    "topk": BODY,
    "argsort": BODY.replace(PICK, ".argsort(descending=True)[:10]"),
    "multinomial": BODY.replace(PICK, ".softmax(0).multinomial(10)"),
    "margin": BODY.replace(ENTROPY, "top = net(x).softmax(1).topk(2, dim=1).values\n    " + MARGIN),
    "margin of a sort": BODY.replace(ENTROPY, "top = net(x).sort(dim=1, descending=True).values\n    " + MARGIN),
    "ensemble": BODY.replace("probs = net(x)", "probs = torch.stack([net(x), net(x + 0.1)]).mean(0)"),
    "in batches": BODY.replace("score(net, x[pool])", "torch.cat([score(net, x[ids]) for ids in pool.split(64)])"),
    "rows": BODY.replace(JOIN, "more = x[picked]  #!\n    " + JOINED),
    "a range": BODY.replace("order = torch.randperm(200)", "order = torch.arange(200)"),
    "a mask": MASK,
    "rows of a mask": MASK.replace("x[pool]", "x[~mask]"),
    "the fittest": FITTEST,
}
PLAIN = BODY.replace(JOIN, JOINED)
WHOLE = BODY.replace("  #!", "").replace("ones(len(pool)", "ones(200").replace("    pool = pool[keep]\n", "")
RIGHT = {
    "ids": PLAIN,
    "a mask": MASK.replace("mask[picked] = True  #!", "mask[pool[picked]] = True"),
    "a mask of some": MASK.replace("mask[picked] = True  #!", (
        "part = torch.zeros(len(pool), dtype=torch.bool)\n    part[picked] = True\n    mask[pool[part]] = True")),
    "the first rows": WHOLE.replace("order[:20], order[20:]", "order[:20], torch.arange(150)").replace(
        "ones(200", "ones(150"),
    "the first rows, by a mask": MASK.replace("mask[measured] = True", "mask[torch.arange(150, 200)] = True").replace(
        "mask[picked] = True  #!", "z = x[picked]").replace("x[mask], y[mask]", "x, y"),
    "all rows": WHOLE.replace("order[:20], order[20:]", "order[:20], order"),
    "scores of all rows": WHOLE.replace("score(net, x[pool])", "score(net, x).index_fill(0, measured, -1.0)"),
    "scores put back": WHOLE.replace("score(net, x[pool])", (
        "torch.full((200,), -1.0).index_copy(0, pool, score(net, x[pool]))")),
    "tables of their own": PLAIN.replace("    keep =", "    rest = x[pool]\n    more = rest[picked]\n    keep ="),
    "nearest of all rows": PLAIN.replace("    keep =", (
        "    near, most = x[(x[pool] @ x.T).max(1).indices], x[(x[pool[0]] @ x.T).topk(3).indices]\n    keep =")),
    "hard samples": PLAIN.replace("    keep =", (
        "    ids = torch.randperm(200)[:32]\n    worst = score(net, x[ids]).topk(8).indices\n"
        "    hard = x[ids][worst], y[ids[worst]]\n    keep =")),
    "the fittest": FITTEST.replace("rows[best]", "rows[ids[best]]").replace("  #!", ""),
}  # fmt: skip
WORDS = "uses as ids of all"


@pytest.mark.parametrize("name", WRONG)
def test_positions_among_some_rows_as_ids_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_ids_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
