"""Checks the sentences about losses and distributions whose labels or inputs are of another kind than they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STEP = """\
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
POLICY = (
    """\
from torch.distributions import Categorical, OneHotCategorical
net = nn.Linear(4, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    out = net(torch.randn(8, 4))
    dist = Categorical(out.log_softmax(-1))  #!
    loss = -(dist.log_prob(dist.sample()) * torch.randn(8)).mean()
"""
    + STEP
)
SPEECH = (
    """\
net = nn.Linear(3, 6)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
ctc = nn.CTCLoss()
targets = torch.randint(0, 5, (4, 3))
for _ in range(3):
    out = net(torch.randn(8, 4, 3)).log_softmax(2)
    loss = ctc(out, targets, torch.full((4,), 8), torch.full((4,), 3))  #!
"""
    + STEP
)
PAIRS = (
    """\
net = nn.Linear(3, 6)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(64, 3), torch.randint(0, 4, (64,))
for _ in range(3):
    i, j = torch.randperm(64)[:16], torch.randperm(64)[:16]
    same = (y[i] == y[j]).float()
    loss = nn.functional.cosine_embedding_loss(net(x[i]), net(x[j]), same, margin=0.2)  #!
"""
    + STEP
)
RANKS = (
    """\
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
rank, x = nn.MarginRankingLoss(margin=0.5), torch.randn(64, 3)
for _ in range(3):
    i, j = torch.randperm(64)[:16], torch.randperm(64)[:16]
    better = (x[i, 0] > x[j, 0]).long()
    loss = rank(net(x[i]).squeeze(1), net(x[j]).squeeze(1), better)  #!
"""
    + STEP
)
LOADED = (
    """\
from torch.utils.data import DataLoader, TensorDataset
net, data = nn.Linear(3, 6), torch.randn(2, 32, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
same = torch.where(torch.rand(32) < 0.5, 1.0, 0.0)
loss_of = nn.CosineEmbeddingLoss(margin=0.1)
for one, other, label in DataLoader(TensorDataset(*data, same), batch_size=8, shuffle=True):
    loss = loss_of(net(one), net(other), target=label)  #!
"""
    + STEP
)
WRONG = {
    "logarithms for probabilities": ("least likely class", POLICY),
    "a keyword": ("least likely class", POLICY.replace("(out.log_softmax(-1))", "(probs=out.softmax(1).log())")),
    "one-hot": ("least likely class", POLICY.replace("= Categorical(", "= OneHotCategorical(")),
    "a blank in the labels": ("takes 0 for the blank, and", SPEECH),
    "the last id": ("takes 5 for the blank, and", SPEECH.replace("CTCLoss(", "CTCLoss(blank=5").replace(
        "(0, 5", "(1, 6")),
    "joined labels": ("takes 0 for the blank, and", SPEECH.replace("(4, 3))", "(12,))").replace(
        "torch.full((4,), 8), torch.full((4,), 3)", "(8,) * 4, (3,) * 4")),
    "no negative pairs": ("takes the labels 1 and -1, and is given 0 and 1", PAIRS),
    "labels of a loader": ("takes the labels 1 and -1, and is given 0 and 1", LOADED),
    "ranks": ("takes the labels 1 and -1, and is given 0 and 1", RANKS),
}  # fmt: skip
RIGHT = {
    "logits": POLICY.replace("Categorical(out", "Categorical(logits=out"),
    "probabilities": POLICY.replace("log_softmax", "softmax"),
    "weights of counts": POLICY.replace("out.log_softmax(-1)", "(out.exp() + 2).log()"),
    "another blank": SPEECH.replace("CTCLoss(", "CTCLoss(blank=5"),
    "padded by the blank": SPEECH.replace("(0, 5", "(1, 5").replace("full((4,), 3)", "full((4,), 2)").replace(
        "    out =", "    targets[:, 2:] = 0\n    out ="),
    "joined": SPEECH.replace("(0, 5, (4, 3))", "(1, 5, (12,))"),
    "signs": PAIRS.replace(".float()", ".float() * 2 - 1"),
    "signs by a choice": PAIRS.replace("(y[i] == y[j]).float()", "torch.where(y[i] == y[j], 1, -1)"),
    "only pairs that are there": PAIRS.replace("same", "valid_pairs"),
    "order": RANKS.replace("(x[i, 0] > x[j, 0]).long()", "torch.sign(x[i, 0] - x[j, 0])"),
}  # fmt: skip
WORDS = ("least likely class", "for the blank", "the labels 1 and -1")


@pytest.mark.parametrize("name", WRONG)
def test_they_are_named(tmp_path: Path, name: str) -> None:
    words, script = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, script) if words in each.text)
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_others_are_left_alone(tmp_path: Path, name: str) -> None:
    assert not [each for each in sentences(tmp_path, RIGHT[name]) if any(words in each.text for words in WORDS)]
