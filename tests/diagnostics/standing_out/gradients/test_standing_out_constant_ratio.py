"""Checks the sentence about values that are divided by their own sum over one element."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NETS = """\
router, experts, head = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3)), nn.Linear(4, 1)
opt = torch.optim.SGD([*router.parameters(), *experts.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(16, 4)
    scores = router(x)
    top, index = scores.softmax(-1).topk(1, dim=-1)
"""
TRAIN = """\
    out = torch.stack([expert(x) for expert in experts], 1)
    out = (out.gather(1, index[..., None].expand(-1, -1, 4)) * weight[..., None]).sum(1)
    loss = head(out).square().mean() + 0.01 * scores.softmax(-1).mean(0).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a sum": NETS + "    weight = top / top.sum(-1, keepdim=True)  #!\n" + TRAIN,
    "a name for the sum": NETS + "    total = top.sum(dim=-1, keepdim=True)\n    weight = top.div(total)  #!\n" + TRAIN,
    "a norm": NETS + "    weight = top / top.norm(dim=-1, keepdim=True)  #!\n" + TRAIN,
    "as many as a setting says": "count = 1\n"
    + NETS.replace("topk(1", "topk(count")
    + "    weight = top / top.sum(-1, keepdim=True)  #!\n"
    + TRAIN,
    "a mean": NETS + "    weight = top / top.mean(-1, keepdim=True)  #!\n" + TRAIN,
    "softmax": NETS + "    weight = torch.softmax(top, dim=-1)  #!\n" + TRAIN,
    "softmax, a module": "soft = nn.Softmax(dim=1)\n" + NETS + "    weight = soft(top)  #!\n" + TRAIN,
    "softmax, a method": NETS + "    weight = top.softmax(1)  #!\n" + TRAIN,
    "softmax, nn.functional": NETS + "    weight = nn.functional.softmax(top, 1)  #!\n" + TRAIN,
    "softmax, written out": NETS + "    weight = torch.exp(top - top.logsumexp(-1, keepdim=True))  #!\n" + TRAIN,
    "softmax, for all of a layer's gradient": NETS.replace("scores.softmax(-1).topk", "scores.topk")
    + "    weight = (top - top.logsumexp(-1, True)).exp()  #!\n"
    + TRAIN.replace("0.01 * scores.softmax(-1).mean(0).square().sum()", "0"),
}
RIGHT = {
    "softmax, written out over three": NETS
    + "    weight = (scores - scores.logsumexp(1, True)).exp().gather(1, index)\n"
    + TRAIN,
    "no division": NETS + "    weight = top\n" + TRAIN,
    "two of three": NETS.replace("topk(1", "topk(2") + "    weight = top / top.sum(-1, keepdim=True)\n" + TRAIN,
    "the sum of all": NETS + "    weight = top / scores.exp().sum(-1, keepdim=True)\n" + TRAIN,
    "over the batch": NETS + "    weight = top / top.sum(0, keepdim=True)\n" + TRAIN,
    "softmax over the batch": NETS + "    weight = top.softmax(0)\n" + TRAIN,
    "no graph": NETS + "    weight = top.detach() / top.detach().sum(-1, keepdim=True)\n" + TRAIN,
    "one batch of one": NETS.replace("x = torch.randn(16, 4)", "x = torch.randn(1 if _ == 2 else 16, 4)")
    + "    weight = top / top.sum(0, keepdim=True)\n" + TRAIN,
    "a loss by its size, which has no graph": """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    losses = (net(torch.randn(1, 4)).squeeze(1) - 1).square()
    with torch.no_grad():
        size = losses.mean(0, keepdim=True)
    opt.zero_grad()
    (losses / size).sum().backward()
    opt.step()
""",
    "a sum without a graph": NETS + "    with torch.no_grad():\n        total = top.sum(-1, keepdim=True)\n"
    "    weight = top / total\n" + TRAIN,
    "the sum before a change in place": NETS + "    top = top * 1\n    total = top.sum(-1, keepdim=True)\n"
    "    top.add_(top.detach().square())\n    weight = top / total\n" + TRAIN,
    "a logsumexp without a graph": NETS + "    with torch.no_grad():\n        total = top.logsumexp(-1, True)\n"
    "    weight = (top - total).exp()\n" + TRAIN,
}  # fmt: skip
WORDS = "its gradient is zero"


@pytest.mark.parametrize("name", WRONG)
def test_a_value_by_itself_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_value_by_more_than_itself_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
