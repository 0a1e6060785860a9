"""Checks the sentence about hinges of two distances with a margin, or two terms, of the wrong sign."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.users, self.items = nn.Linear(6, 4), nn.Embedding(9, 4), nn.Embedding(9, 4)
    def forward(self, x):
        return F.normalize(self.layer(x), dim=-1)
    def score(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1)
net, margin = Net(), 0.3
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    a, p, n = net(torch.randn(8, 6)), net(torch.randn(8, 6)), net(torch.randn(8, 6))
    table, same = torch.cdist(a, a), torch.arange(8) % 2 == torch.arange(8)[:, None] % 2
    users, liked, other = torch.arange(8), torch.arange(8), torch.arange(1, 9)
    loss = {}
    opt.zero_grad()
    loss.mean().backward()
    opt.step()
"""
WRONG = {
    "a margin that is subtracted": "F.relu((a - p).norm(dim=1) - (a - n).norm(dim=1) - margin)",
    "clamp": "torch.clamp((a - p).pow(2).sum(1) - ((a - n).pow(2).sum(1) + margin), min=0)",
    "similarities": "F.relu(F.cosine_similarity(a, n) - F.cosine_similarity(a, p) - 0.2)",
    "products": "F.relu((a * n).sum(1) - (a * p).sum(1) - 0.2)",
    "a table of products": "F.relu((a @ p.T).masked_fill(same, -9.0).amax(1) - (a @ p.T).diagonal() - 0.2)",
    "batch hard": "F.relu((table * same).amax(1) - table.masked_fill(same, 9.0).amin(1) - margin)",
    "scores that are exchanged": "F.relu(1.0 + net.score(users, pos) - net.score(users, neg))",
    "distances that are exchanged": "torch.max(F.pairwise_distance(a, n) - F.pairwise_distance(a, p) + margin, "
    "torch.zeros(8))",
    "a layer": "nn.TripletMarginLoss()(anchor, negative, positive)",
}
RIGHT = {
    "distances": "F.relu((a - p).norm(dim=1) - (a - n).norm(dim=1) + margin)",
    "one minus": "F.relu(margin - ((a - n).norm(dim=1) - (a - p).norm(dim=1)))",
    "similarities": "F.relu(F.cosine_similarity(a, n) - F.cosine_similarity(a, p) + 0.2)",
    "scores": "F.relu(1.0 - net.score(users, pos) + net.score(users, neg))",
    "a layer": "nn.TripletMarginLoss()(anchor, positive, negative)",
    "two bounds": "F.relu((a - p).norm(dim=1) - margin) + F.relu(1.0 - (a - n).norm(dim=1))",
    "a tolerance": "F.relu((a - n).abs().sum(1) - 0.5)",
    "a bound": "F.relu((a - p).norm(dim=1) - (a - n).norm(dim=1).detach() - margin)",
    "letters of other words": "F.relu(F.pairwise_distance(z, n) - F.pairwise_distance(z, p) + margin)",
    "two margins": "F.relu((a - p).norm(dim=1) - (a - n).norm(dim=1) + margin) + F.relu((a - n).norm(dim=1) "
    "- (a - p).norm(dim=1) - 3.0)",
    "a tolerance of two distances": "F.relu(d_left - d_right - 0.2) + F.relu(d_right - d_left - 0.2)",
    "a cap beside a soft triplet": "F.softplus(d_pos - d_neg) + 0.1 * F.relu(d_neg - d_pos - 0.2)",
    "a cap, without names": "F.softplus(d_left - d_right) + 0.1 * F.relu(d_right - d_left - 0.2)",
    "triplets to be forgotten": "F.triplet_margin_loss(anchor[:4], positive[:4], negative[:4]) "
    "+ 0.1 * F.triplet_margin_loss(anchor[4:], negative[4:], positive[4:])",
    "weighted squares": "F.relu((w * (a - p) ** 2).sum(1) - (w * (a - n) ** 2).sum(1) + margin)",
    "weighted rows": "F.relu(d * (a - p).pow(2).sum(1) - d * (a - n).pow(2).sum(1) + margin)",
    "weights of a layer": "F.relu((h * (a - p).abs()).sum(1) - (h * (a - n).abs()).sum(1) + margin)",
    "weighted distances": "F.relu(c * F.pairwise_distance(a, p) - c * F.pairwise_distance(a, n) + margin)",
    "weighted distances, by names": "F.relu(c * d_pos - c * d_neg + margin)",
    "weighted squares, by names": "F.relu((w * x_pos).sum(1) - (w * x_neg).sum(1) + margin)",
    "weighted squares, by a matrix": "F.relu(x_pos @ w - x_neg @ w + margin)",
    "inverse distances": "F.relu(i_neg - i_pos + margin)",
    "other pairs": "F.relu((a - p).norm(dim=1) - (n - n.roll(1)).norm(dim=1) - margin)",
}
NAMES = "z, anchor, positive, negative, pos, neg = a, a, p, n, liked.clamp(max=7), other.clamp(max=8)\n    loss = "
NAMES = NAMES.replace(
    "\n",
    "\n    w, d, h = torch.ones(4, requires_grad=True), torch.rand(8), torch.softmax(net.layer(torch.randn(8, 6)), 1)"
    "\n    c, d_pos, d_neg = torch.sigmoid(a.norm(dim=1)), F.pairwise_distance(a, p), F.pairwise_distance(a, n)"
    "\n    d_left, d_right = d_pos * 1.0, d_neg * 1.0"
    "\n    x_pos, x_neg = (a - p) ** 2, (a - n) ** 2"
    "\n    i_pos, i_neg = x_pos.sum(1).add(1.0).pow(-1), x_neg.sum(1).add(1.0).pow(-1)\n",
)


def _script(loss: str) -> str:
    return SCRIPT.replace("loss = {}", NAMES + loss + "  #!")


@pytest.mark.parametrize("name", WRONG)
def test_hinges_of_the_wrong_sign_are_named(tmp_path: Path, name: str) -> None:
    script = _script(WRONG[name])
    (found,) = (each for each in sentences(tmp_path, script) if "farther apart" in each.text or "margin" in each.text)
    assert found.labels[0].span.line == marked(script)


MISLED = """\
encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
query, positive, negative = torch.randn(16, 8), torch.randn(16, 8), torch.randn(16, 8)
z_pos, z_neg = encoder(positive).detach(), encoder(negative).detach()
delta = nn.Parameter(torch.zeros(16, 8))
opt = torch.optim.Adam([delta], lr=0.01)
for _ in range(3):
    adv = encoder(query + delta)
    loss = torch.relu((adv - negative[:, :4]).norm(dim=1) - (adv - positive[:, :4]).norm(dim=1) + 0.5).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("freeze", ["", "\nencoder.requires_grad_(False)"])
def test_an_input_that_is_to_mislead_an_encoder_is_left_alone(tmp_path: Path, freeze: str) -> None:
    script = MISLED.replace("\nquery", freeze + "\nquery")
    assert [each.text for each in sentences(tmp_path, script) if "farther apart" in each.text] == []


@pytest.mark.parametrize("name", RIGHT)
def test_other_hinges_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, _script(RIGHT[name]))
    assert [each.text for each in found if "farther apart" in each.text or "a margin of" in each.text] == []
