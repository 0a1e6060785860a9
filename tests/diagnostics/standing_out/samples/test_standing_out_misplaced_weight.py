"""Checks what `--training` says about weights of a sampler that are those of other samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "not those of the samples at their places"
SCRIPT = """\
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler, random_split
labels = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 300, replacement=True)
data = TensorDataset(torch.randn(300, 4) + labels[:, None], labels)
order = torch.randperm(300)[:240]
{part}
{weights}
loader = DataLoader(part, batch_size=20, sampler=sampler)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
OF_ORDER = "part = Subset(data, order.tolist())"
FIRST = """\
known = labels[:240]
sampler = WeightedRandomSampler((1 / known.bincount())[known], 240)  #!
"""
MASK = """\
is_used = torch.zeros(300, dtype=torch.bool)
is_used[order] = True
counts = labels[is_used].bincount(minlength=3)
sampler = WeightedRandomSampler((1 / counts)[labels[is_used]] ** 0.5, num_samples=300, replacement=True)  #!
"""
GROUPS = """\
groups = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 300, replacement=True)
sampler = WeightedRandomSampler((1 / groups.bincount())[groups], 300)
"""
NAMES = """\
groups = ["ab"[int(each)] for each in torch.multinomial(torch.tensor([0.7, 0.3]), 300, replacement=True)]
labels = (torch.rand(300) < 0.3).long()
data = TensorDataset(torch.randn(300, 4), labels)
part = data
sampler = WeightedRandomSampler([1 / groups.count(each) for each in groups], 300)
"""
COLUMNS = """\
other = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 300, replacement=True)
data = TensorDataset(data.tensors[0], other, labels)
part = Subset(data, order.tolist())
known = labels[order]
sampler = WeightedRandomSampler((1 / known.bincount())[known], 240)
"""
TABLE = """\
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
torch.manual_seed(0)
meta = torch.stack([(torch.rand(600) < 0.3).long(), (torch.rand(600) < 0.3).long()], 1)
x = torch.randn(600, 5) + meta[:, :1]
train = torch.randperm(600)[:400]
label, domain = {columns}
weight = (1 / torch.bincount(domain).float())[domain]
loader = DataLoader(TensorDataset(x[train], label), 40, sampler=WeightedRandomSampler(weight, 400))
net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for a, b in loader:
        loss = nn.functional.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
JOINED = "meta.T.reshape(-1)[:600][train], meta.T.reshape(-1)[600:][train]"
ONE_LIST = "(each[train] for each in torch.cat([meta[:, 0], meta[:, 1]]).split(600))"
BY_ROWS = """\
groups = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 300, replacement=True)
part = TensorDataset(data.tensors[0][order], labels[order])
sampler = WeightedRandomSampler((1 / groups.bincount())[groups][order], 240)
"""
NEXT = """\
labels = (torch.rand(301) < 0.25).long()
now, following = labels[:-1], labels[1:]
part = TensorDataset(torch.randn(300, 4), following)
part = TensorDataset(part.tensors[0][order], following[order])
sampler = WeightedRandomSampler((1 / now.bincount())[now[order]], 240)
"""
OWN = FIRST.replace("labels[:240]", "labels[order]").replace("  #!", "")
WRONG = {
    "labels of the first samples": SCRIPT.format(part="part, _ = random_split(data, [240, 60])", weights=FIRST),
    "labels in another order": SCRIPT.format(part=OF_ORDER, weights=MASK),
}
RIGHT = {
    "labels of the part": SCRIPT.format(part=OF_ORDER, weights=OWN),
    "labels of all": SCRIPT.format(part="part = data", weights=FIRST.replace("[:240]", "").replace("  #!", "")),
    "weights of groups": SCRIPT.format(part="part = data", weights=GROUPS),
    "weights of groups in a list": SCRIPT.format(part="", weights=NAMES),
    "labels and domains in one table": TABLE.format(columns="meta[train].unbind(1)"),
    "labels and domains by their columns": TABLE.format(columns="meta[train][:, 0], meta[train][:, 1]"),
    "labels and domains in one row": TABLE.format(columns=JOINED),
    "labels and domains, one after the other": TABLE.format(columns=ONE_LIST),
    "weights of groups, by the rows of the part": SCRIPT.format(part="", weights=BY_ROWS),
    "weights of the current labels, for the next ones": SCRIPT.format(part="", weights=NEXT),
    "another column before the labels": SCRIPT.replace("for x, y", "for x, _, y").format(part="", weights=COLUMNS),
    "a weight of its own for each sample": SCRIPT.format(
        part=OF_ORDER, weights="sampler = WeightedRandomSampler(data.tensors[0][order, 0].exp(), 240)"
    ),
    "fewer different weights than labels": SCRIPT.format(
        part=OF_ORDER, weights="sampler = WeightedRandomSampler(1.0 + (torch.rand(240) < 0.3), 240)"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_weights_of_other_samples_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "gets 3 different weights, for " in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_weights_of_the_samples_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
