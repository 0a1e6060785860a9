"""Checks what `--training` says about results that are kept in the order of a shuffle."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "keeps results for rows of"
START = """\
from torch.utils.data import DataLoader, Subset, TensorDataset
data, labels = torch.randn(60, 4), torch.randint(0, 2, (60,))
teacher, net = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x, y):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOADED = (
    START
    + """\
found = []
with torch.no_grad():
    for (x,) in DataLoader(TensorDataset(data), batch_size=10, shuffle=True):
        found.append(teacher(x).argmax(1))
pseudo = torch.cat(found)  #!
for x, y in DataLoader(TensorDataset(data, pseudo), batch_size=10, shuffle=True):
    train(x, y)
"""
)
INDEXED = (
    START
    + """\
soft = torch.zeros(60, 2)
order = torch.randperm(60)
with torch.no_grad():
    for start in range(0, 60, 10):
        soft[start : start + 10] = teacher(data[order[start : start + 10]]).softmax(1)  #!
for epoch in range(2):
    for rows in torch.randperm(60).split(10):
        train(data[rows], soft[rows])
"""
)
HARD = (
    START
    + """\
loader, data_set = DataLoader(data_set := TensorDataset(data, labels), batch_size=10, shuffle=True), data_set
with torch.no_grad():
    losses = torch.cat([nn.functional.cross_entropy(net(x), y, reduction="none") for x, y in loader])  #!
hard = losses.topk(30).indices
for x, y in DataLoader({part}, batch_size=10):
    train(x, y)
"""
)
JOIN = "pseudo = torch.cat(found)  #!"
BEFORE = "order = torch.randperm(60)\n"
WRONG = {
    "pseudo-labels of a loader": LOADED,
    "an index": INDEXED,
    "hard samples": HARD.format(part="TensorDataset(data[hard], labels[hard])"),
    "predictions beside labels": LOADED.replace("for x, y in", "print((pseudo == labels).float().mean())\nfor x, y in")
    .replace("for (x,) in DataLoader(TensorDataset(data)", "for x, _ in DataLoader(TensorDataset(data, labels)")
    .replace("TensorDataset(data, pseudo)", "TensorDataset(data, labels)"),
}
RIGHT = {
    "no shuffle": LOADED.replace(", shuffle=True):\n        found", "):\n        found"),
    "the samples are kept, too": LOADED.replace("found.append(", "kept.append(x); found.append(")
    .replace("found = []", "found, kept = [], []")
    .replace("TensorDataset(data, pseudo)", "TensorDataset(torch.cat(kept), pseudo)"),
    "two sets of samples": LOADED.replace("found.append(", "kept.append(x); found.append(").replace(
        "found = []", "found, kept = [], []").replace("TensorDataset(data, pseudo)", (
        "TensorDataset(labels, data) + TensorDataset(pseudo, torch.cat(kept))")).replace("for x, y in", "for y, x in"),
    "written to their rows": INDEXED.replace("soft[start : start + 10] =", "soft[order[start : start + 10]] =").replace(
        "  #!", ""),
    "put back": INDEXED.replace("for epoch in", "soft = soft[order.argsort()]\nfor epoch in"),
    "put back in place": INDEXED.replace("for epoch in", "soft[order] = soft.clone()\nfor epoch in"),
    "shuffled on purpose": LOADED.replace("TensorDataset(data, pseudo)", "TensorDataset(data, same, pseudo)").replace(
        JOIN, "pseudo, same = torch.cat(found), teacher(data).argmax(1)").replace("for x, y in", "for x, y, _ in"),
    "named as negatives": LOADED.replace("pseudo", "negatives"),
    "rows in this order": INDEXED.replace("for epoch in", "data = data[order]\nfor epoch in"),
    "the rows of positions": INDEXED.replace("train(data[rows], soft[rows])", (
        "chosen = order[soft[:, 0].topk(10).indices]\n        train(data[chosen], labels[chosen])")),
    "numbers of rows, sorted": HARD.format(part="TensorDataset(data[hard], labels[hard])").replace(
        "  #!", "").replace("losses.topk(30).indices", (
        "torch.cat([i for i, in DataLoader(TensorDataset(torch.arange(60)), 10, shuffle=True)]).topk(9).values")),
    "numbers of rows, compared": LOADED.replace("found = []", "found, ids = [], torch.arange(60)").replace(
        "TensorDataset(data), batch", "TensorDataset(data, ids), batch").replace("for (x,)", "for x, i").replace(
        "teacher(x).argmax(1)", "i").replace("  #!", "\nprint((pseudo == ids).sum())").replace(
        "TensorDataset(data, pseudo)", "TensorDataset(data, labels)"),
    "tables that are put into this order": INDEXED.replace("for epoch in", (
        "data[:] = data[order]\nfor epoch in")).replace("  #!", ""),
    "only the mean": LOADED.replace("TensorDataset(data, pseudo)", "TensorDataset(data, labels)").replace(
        JOIN, "pseudo = torch.cat(found)\nprint(pseudo.float().mean(), labels.float().mean())"),
    "all pairs of predictions and targets": LOADED.replace("TensorDataset(data, pseudo)", (
        "TensorDataset(data, labels)")).replace(
        JOIN, "pseudo = torch.cat(found)\nprint((pseudo.unsqueeze(1) - labels).abs().float().mean())"),
    "the shapes of one item": LOADED.replace("TensorDataset(data, pseudo)", "TensorDataset(data, labels)").replace(
        JOIN, "pseudo = torch.cat(found)\nprint(data[0].shape, pseudo[0].shape)"),
    "parts of two loops": LOADED.replace("TensorDataset(data, pseudo)", "TensorDataset(data, labels)").replace(
        JOIN, "pseudo = torch.cat(found)\nfor k in range(0, 60, 20):\n    print(pseudo[k : k + 20].float().mean())\n"
        "for k in range(0, 60, 20):\n    print(data[k : k + 20].mean())"),
    "two statistics of one draw": INDEXED.replace("train(data[rows], soft[rows])", (
        "print(soft[rows].mean(), data[rows].mean())\n        train(data[rows], labels[rows])")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_results_in_the_order_of_a_shuffle_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_results_beside_their_rows_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
