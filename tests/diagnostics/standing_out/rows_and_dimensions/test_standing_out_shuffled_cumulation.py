"""Checks the sentence about sums over the rows before, along a batch that is in the order of a shuffle."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import numpy as np
from torch.utils.data import DataLoader, TensorDataset

data, times = torch.randn(48, 4), torch.rand(48).sort(descending=True).values
events = (torch.rand(48) > 0.3).float()
net = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
"""
LOSS = """\
def cox(risk, event):
    at_risk = torch.logcumsumexp(risk, dim=0)  #!
    return -((risk - at_risk) * event).sum() / event.sum()
"""
TRAIN = """\
for _ in range(3):
    for rows in torch.randperm(48).split(12):
        opt.zero_grad()
        cox(net(data[rows]).squeeze(-1), events[rows]).backward()
        opt.step()
"""
PLAIN = LOSS.replace("  #!", "")
LINE = "at_risk = torch.logcumsumexp(risk, dim=0)"
LOADER = TRAIN.replace("rows in torch.randperm(48).split(12)", (
    "x, event in DataLoader(TensorDataset(data, events), batch_size=12, shuffle=True)")).replace(
    "data[rows]", "x").replace("events[rows]", "event")  # fmt: skip
SLICES = TRAIN.replace("for rows in torch.randperm(48).split(12):\n", (
    "order = torch.randperm(48)\n    for i in range(0, 48, 12):\n        rows = order[i:i + 12]\n"))  # fmt: skip
NUMPY = TRAIN.replace("torch.randperm(48).split(12)", "torch.from_numpy(np.random.permutation(48)).split(12)")
MASKED = LOSS.replace("((risk - at_risk) * event).sum()", "(risk[event > 0] - at_risk[event > 0]).sum()")
WRONG = {
    "a permutation": START + LOSS + TRAIN,
    "slices of one": START + MASKED + SLICES.replace("data[rows]", "data.index_select(0, rows)"),
    "one of NumPy": START + LOSS + NUMPY,
    "a loader": START + LOSS + LOADER,
    "a sum of exponentials": START + LOSS.replace(LINE, "at_risk = (risk - risk.max()).exp().cumsum(0).log()") + TRAIN,
    "from the end": START + LOSS.replace(LINE, "at_risk = risk.flip(0).logcumsumexp(0).flip(0)") + LOADER,
    "a column": START + LOSS + TRAIN.replace(".squeeze(-1)", "").replace("events[rows]", "events[rows, None]"),
}
SORTED = TRAIN.replace(".split(12):\n", ".split(12):\n        rows = rows.sort().values\n")
RIGHT = {
    "sorted rows": START + PLAIN + SORTED,
    "sorted in the loss": START + PLAIN.replace("    at_risk", (
        "    order = torch.argsort(time, descending=True)\n    risk, event = risk[order], event[order]\n    at_risk"))
    .replace("event):", "event, time):") + TRAIN.replace("events[rows])", "events[rows], times[rows])"),
    "sorted in NumPy": START + PLAIN + NUMPY.replace(".split(12):\n", (
        ".split(12):\n        rows = torch.from_numpy(np.sort(rows.numpy()))\n")),
    "sorted by Python": START + PLAIN + TRAIN.replace(".split(12):\n", (
        ".split(12):\n        rows = sorted(rows.tolist())\n")),
    "batches in a random order": START + PLAIN + TRAIN.replace("rows in torch.randperm(48).split(12)", (
        "start in torch.randperm(37)[:4]")).replace("        opt.zero", "        rows = start + torch.arange(12)\n"
        "        opt.zero"),
    "a loader in order": START + PLAIN + LOADER.replace("shuffle=True", "shuffle=False"),
    "a loader that sorts": START + PLAIN + "def together(rows):\n"
    "    return [torch.stack(each) for each in zip(*sorted(rows, key=lambda row: -float(row[0][0])))]\n"
    + LOADER.replace("shuffle=True", "shuffle=True, collate_fn=together"),
    "along the columns": START.replace("(8, 1)", "(8, 5)") + PLAIN.replace("dim=0", "dim=1")
    + TRAIN.replace("events[rows]", "events[rows, None]"),
    "a ranking drawn by scores": START + """\
for _ in range(12):
    scores = net(data[:8]).squeeze(-1)
    rank = torch.multinomial(scores.detach().softmax(0), 8)
    s = scores[rank]
    loss = -((s - s.flip(0).logcumsumexp(0).flip(0)) * events[rank]).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "a running mean over a set": START + """\
for _ in range(12):
    order = torch.randperm(48)
    points, target = data[order], times[order]
    w = net(points).squeeze(1).exp()
    norm = w.cumsum(0).log()
    mean = (w * target).cumsum(0) / norm.exp()
    loss = (mean[:-1] - target[1:]).square().mean() + (net(points).squeeze(1) - norm).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "only the last sum": START + PLAIN.replace("dim=0)", "dim=0)[-1]") + TRAIN,
}  # fmt: skip
WORDS = "adds up, for each row of a batch, the rows before it"


@pytest.mark.parametrize("name", WRONG)
def test_sums_along_a_shuffled_batch_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_sums_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
