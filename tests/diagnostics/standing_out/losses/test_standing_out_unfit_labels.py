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
MASKS = (
    """\
net = nn.Conv2d(3, 5, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def resize(picture, mode="bilinear"):
    return nn.functional.interpolate(picture, size=(12, 12), mode=mode)  #!
for _ in range(3):
    masks = torch.randint(0, 5, (4, 8, 8))
    y = resize(masks[:, None].float()).squeeze(1).long()
    loss = nn.functional.cross_entropy(net(resize(torch.randn(4, 3, 8, 8))), y)
"""
    + STEP
)
SET = (
    """\
from torch.utils.data import DataLoader, Dataset
class Places(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, place):
        mask = torch.randint(0, 5, (1, 1, 8, 8), dtype=torch.uint8)
        mask = nn.functional.interpolate(mask.float(), None, 2, "bilinear")  #!
        return torch.randn(3, 16, 16), mask[0, 0].to(torch.int64)
net = nn.Conv2d(3, 5, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for x, y in DataLoader(Places(), batch_size=4):
    loss = nn.CrossEntropyLoss()(net(x), y)
"""
    + STEP
)
TAGS = (
    """\
net = nn.Linear(6, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(32, 6)
tags = (x @ torch.randn(6, 4) > 0.5).float()
for _ in range(3):
    i = torch.randperm(32)[:8]
    loss = nn.functional.cross_entropy(net(x[i]), tags[i])  #!
"""
    + STEP
    + "print(((torch.sigmoid(net(x)) > 0.5) == tags.bool()).float().mean())\n"
)
NEAREST = (
    """\
net = nn.Linear(6, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    y = torch.randint(0, 3, (12,))
    z = net(torch.randn(12, 6))
    d = torch.cdist(z, z)
    same = y[:, None] == y[None, :]
    near = d.masked_fill(~same, float("inf")).min(1).values  #!
    loss = (near - d.mean(1) + 1).relu().mean()
"""
    + STEP
)
NEAREST_LINE = 'd.masked_fill(~same, float("inf")).min(1)'
WRONG = {
    "the row itself": ("its own distance is 0", NEAREST),
    "distances by hand": ("its own distance is 0", NEAREST.replace(
        "torch.cdist(z, z)", "(z.unsqueeze(0) - z.unsqueeze(1)).pow(2).sum(-1)")),
    "distances of all rows by an index": ("its own distance is 0", NEAREST.replace(
        "torch.cdist(z, z)", "(z[None] - z[:, None, :]).norm(dim=-1)")),
    "a choice of the row itself": ("its own distance is 0", NEAREST.replace(
        NEAREST_LINE, "torch.where(same, d, torch.inf).min(dim=1)")),
    "the row itself in a sum": ("its own distance is 0", NEAREST.replace(
        NEAREST_LINE, "(d + 1e6 * (1 - same.float())).min(dim=1)")),
    "ids of a mask": ("interpolates between ids of classes", MASKS),
    "ids in a data set": ("interpolates between ids of classes", SET),
    "several tags": ("as if it had one class", TAGS),
    "several tags and a module": ("as if it had one class", TAGS.replace(
        "functional.cross_entropy(", "CrossEntropyLoss()(").replace("torch.sigmoid(net(x))", "net(x).sigmoid()")),
    "several tags that are drawn, of a loader": ("as if it had one class", TAGS.replace(
        "(x @ torch.randn(6, 4) > 0.5).float()", "torch.randint(0, 2, (32, 4)).float()").replace("x[i]), tags[i])", (
        "torch.stack([x[k] for k in i])), torch.stack([tags[k] for k in i]))"))),
    "several tags by hand": ("as if it had one class", TAGS.replace(
        "nn.functional.cross_entropy(net(x[i]), tags[i])", "-(tags[i] * net(x[i]).log_softmax(1)).sum(1).mean()"
        ).replace(
        "(torch.sigmoid(net(x)) > 0.5)", "(net(x) > 0)")),
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
    "the farthest": NEAREST.replace(NEAREST_LINE, "d.masked_fill(~same, 0).max(1)"),
    "the nearest of the others": NEAREST.replace("(~same", "(same"),
    "without the diagonal": NEAREST.replace("(~same", "(~same | torch.eye(12).bool()"),
    "without the diagonal in place": NEAREST.replace("    near", "    same.fill_diagonal_(False)\n    near"),
    "of two views": NEAREST.replace("cdist(z, z)", "cdist(z, net(torch.randn(12, 6)))"),
    "of two views in one batch": NEAREST.replace("randn(12", "randn(24").replace("(z, z)", "(z[:12], z[12:])"),
    "of two halves of the columns": NEAREST.replace(
        "torch.cdist(z, z)", "(z[:, :2].unsqueeze(0) - z[:, 2:].unsqueeze(1)).norm(dim=-1)"),
    "ids of two classes": MASKS.replace("randint(0, 5", "randint(0, 2").replace("(3, 5, 1)", "(3, 2, 1)"),
    "the nearest id": MASKS.replace(".float())", ".float(), mode='nearest')"),
    "shares of classes": MASKS.replace("resize(masks[:, None].float()).squeeze(1).long()", (
        "resize(nn.functional.one_hot(masks, 5).permute(0, 3, 1, 2).float()).argmax(1)")),
    "pairs that are near": TAGS.replace(
        "nn.functional.cross_entropy(net(x[i]), tags[i])", (
        "-((torch.cdist(x[i], x[i]) < 3).float() * (net(x[i]) @ net(x[i]).T).log_softmax(1)).sum(1).mean()\n"
        "    same = (net(x[i]) @ net(x[i]).T) > 0")),
    "one of two": TAGS.replace("(x @ torch.randn(6, 4) > 0.5)", "nn.functional.one_hot(torch.randint(0, 2, (32,)), 4)"),
    "a loss of each class beside one of the list": TAGS.replace(
        "nn.functional.cross_entropy(net(x[i]), tags[i])", "0; out = net(x[i])").replace("    opt.zero", (
        "    listwise = -(tags[i] * out.log_softmax(1)).sum(1).mean()\n"
        "    loss = listwise + nn.functional.binary_cross_entropy(torch.sigmoid(out), tags[i])\n    opt.zero"), 1),
    "tags apart": TAGS.replace("cross_entropy", "binary_cross_entropy_with_logits"),
    "one tag a row": TAGS.replace("(x @ torch.randn(6, 4) > 0.5)", "nn.functional.one_hot(x[:, 0].gt(0).long(), 4)"),
    "the greatest of a row": TAGS.replace(
        "(x @ torch.randn(6, 4) > 0.5)", "(lambda s: s >= s.amax(1, keepdim=True))(x @ torch.randn(6, 4))"),
    "the nearest of a row by its rank": TAGS.replace(
        "(x @ torch.randn(6, 4) > 0.5)", "(torch.cdist(x, torch.randn(4, 6)).argsort(1).argsort(1) < 1)"),
    "shares of tags": TAGS.replace("> 0.5).float()", "> 0.5).float() + 1e-3\ntags = tags / tags.sum(1, keepdim=True)"),
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
WORDS = (
    "its own distance is 0",
    "interpolates between",
    "as if it had one class",
    "least likely class",
    "for the blank",
    "the labels 1 and -1",
)


@pytest.mark.parametrize("name", WRONG)
def test_they_are_named(tmp_path: Path, name: str) -> None:
    words, script = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, script) if words in each.text)
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_others_are_left_alone(tmp_path: Path, name: str) -> None:
    assert not [each for each in sentences(tmp_path, RIGHT[name]) if any(words in each.text for words in WORDS)]


def test_the_module_that_says_what_the_blank_is_has_a_label(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, SPEECH) if "for the blank" in each.text)
    module = next(each for each in found.labels if each.text == "its `blank` is 0")
    assert module.span.line == marked(SPEECH.replace("  #!", "").replace("CTCLoss()", "CTCLoss()  #!"))
