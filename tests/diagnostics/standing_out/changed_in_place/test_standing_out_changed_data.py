"""Checks what `--training` says about data that a line changes in place in each round."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said
from support.standing_out import sentences

from tensorlens import session
from tensorlens.records.source import line_at

START = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
data, target = torch.randn(32, 4), torch.randn(32, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

def step(x, y):
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
"""
ADDING_UP = {
    "noise in slices": """
        for epoch in range(3):
            for i in range(0, 32, 8):
                batch = data[i:i + 8]
                batch += 0.1 * torch.randn_like(batch)  # here
                step(batch, target[i:i + 8])
        """,
    "a function that augments": """
        def jitter(images):
            return images.add_(torch.rand(images.shape), alpha=0.1)  # here
        for epoch in range(3):
            for x, y in zip(data.split(16), target.split(16)):
                step(jitter(x), y)
        """,
    "items of a data set": """
        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 32
            def __getitem__(self, i):
                row = data[i]
                row.div_(3.0)  # here
                return row, target[i]
        for epoch in range(3):
            for x, y in torch.utils.data.DataLoader(Rows(), batch_size=8, shuffle=True):
                step(x, y)
        """,
    "columns that are filled": """
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                step(x.index_fill_(1, torch.randperm(4)[:2], 0.0), y)  # here
        """,
    "spans that are drawn": """
        class Mask(nn.Module):
            def span(self):
                at = int(torch.randint(0, 3, (1,)))
                return slice(at, at + 1)
            def forward(self, rows):
                for row in rows:
                    row[self.span()] = 0.0  # here
                return rows
        mask = Mask()
        for epoch in range(3):
            for i in range(0, 32, 8):
                step(mask(data[i:i + 8]), target[i:i + 8])
        """,
    "a mask of random values": """
        for epoch in range(4):
            for i in range(0, 32, 16):
                part = data.narrow(0, i, 16)
                part.mul_((torch.rand(16, 4) > 0.2).float())  # here
                step(part, target[i:i + 16])
        """,
    "targets are smoothed": """
        for epoch in range(3):
            for i in range(0, 32, 8):
                y = target[i:i + 8]
                y *= 0.9  # here
                step(data[i:i + 8], y)
        """,
    "means of the features": """
        means = data.mean(0)
        for epoch in range(3):
            for i in range(0, 32, 8):
                part = data[i:i + 8]
                part.sub_(means)  # here
                step(part, target[i:i + 8])
        """,
    "labels that are dropped": """
        labels = torch.randint(3, (32,))
        table = nn.Embedding(4, 4)
        for epoch in range(4):
            for i in range(0, 32, 16):
                y = labels[i:i + 16]
                y[torch.rand(16) < 0.2] = 3  # here
                step(data[i:i + 16] + table(y), target[i:i + 16])
        """,
    "ids under a mask": """
        ids = torch.randint(3, (32, 4))
        table = nn.Embedding(4, 4)
        for epoch in range(4):
            for part in ids.split(16):
                hidden = torch.bernoulli(torch.full((16, 4), 0.3)).bool()
                part.masked_fill_(hidden, 3)  # here
                step(table(part).mean(1), target[:16])
        """,
    "pixels that are scaled": """
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                x.div_(2.0)  # here
                x.sub_(0.5).mul_(3.0)
                step(x, y)
        """,
    "dropout in place": """
        for epoch in range(3):
            for x, y in zip(data.chunk(4), target.chunk(4)):
                step(F.dropout(x, 0.1, inplace=True), y)  # here
        """,
    "noise within limits": """
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                torch.add(x, torch.randn(8, 4), alpha=0.1, out=x)  # here
                torch.clamp(x, -2, 2, out=x)
                step(x, y)
        """,
    "a drift over a grid": """
        grid = torch.linspace(0, 1, 4)
        def augment(x):
            wave = torch.sin(6.28 * torch.rand(1) * grid + torch.rand(1))
            x += torch.empty_like(x).normal_(0, 0.1) + 0.1 * wave  # here
            return x.clip_(-2, 2)
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                step(augment(x), y)
        """,
}
NAMES = {"targets": "target", "labels": "labels", "ids": "ids"}
USUAL = {
    "values are limited": """
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                step(x.clamp_(-2, 2), y)
        """,
    "a state with a noisy input within limits": """
        state, part_of_data = torch.zeros(2, 8, 4), data[:8].contiguous()
        for n in range(12):
            part = state[n % 2]
            part *= 0.5
            part += part_of_data + 0.1 * torch.randn(8, 4)
            step(part.clamp_(-2, 2), target[:8])
        """,
    "labels that are dropped in a copy": """
        labels = torch.randint(3, (32,))
        table = nn.Embedding(4, 4)
        for epoch in range(4):
            for i in range(0, 32, 16):
                y = labels[i:i + 16].clone()
                y[torch.rand(16) < 0.2] = 3
                step(data[i:i + 16] + table(y), target[i:i + 16])
        """,
    "labels that are set again": """
        labels = torch.randint(3, (32,))
        known, table = labels.clone(), nn.Embedding(4, 4)
        for epoch in range(4):
            labels.copy_(known)
            for i in range(0, 32, 16):
                y = labels[i:i + 16]
                y[torch.rand(16) < 0.2] = 3
                step(data[i:i + 16] + table(y), target[i:i + 16])
        """,
    "ids in a buffer": """
        buffer = torch.zeros(2, 16, dtype=torch.long)
        table = nn.Embedding(4, 4)
        for n in range(12):
            ids = buffer[n % 2]
            ids[torch.randperm(16)[:8]] = torch.randint(4, (8,))
            step(table(ids), target[:16])
        """,
    "labels that are ignored": """
        labels = torch.randint(3, (32,))
        ignored, table = torch.rand(32) < 0.2, nn.Embedding(4, 4)
        for epoch in range(4):
            for i in range(0, 32, 16):
                y = labels[i:i + 16]
                y[ignored[i:i + 16]] = 3
                step(data[i:i + 16] + table(y), target[i:i + 16])
        """,
    "the same columns each time": """
        hidden = torch.randperm(4)[:2]
        for epoch in range(3):
            for x, y in zip(data.split(8), target.split(8)):
                step(x.index_fill_(1, hidden, 0.0), y)
        """,
    "one place each time": """
        class Last(nn.Module):
            def place(self):
                return -1
            def forward(self, rows):
                for row in rows:
                    row[self.place()] = 1.0
                return rows
        last = Last()
        for epoch in range(3):
            for i in range(0, 32, 8):
                step(last(data[i:i + 8]), target[i:i + 8])
        """,
    "noise in a copy": """
        for epoch in range(3):
            for i in range(0, 32, 8):
                batch = data[i:i + 8].clone()
                batch += 0.1 * torch.randn_like(batch)
                step(batch, target[i:i + 8])
        """,
    "random rows are a copy": """
        for _ in range(12):
            batch = data[torch.randint(32, (8,))]
            batch.add_(torch.randn(8, 4))
            step(batch, target[:8])
        """,
    "normalised once": """
        for i in range(0, 32, 8):
            part = data[i:i + 8]
            part -= 1.0
        for epoch in range(3):
            for i in range(0, 32, 8):
                step(data[i:i + 8], target[i:i + 8])
        """,
    "a buffer that is filled anew": """
        buffer = torch.empty(2, 8, 4)
        for n in range(12):
            part = buffer[n % 2]
            part.copy_(data[:8])
            part.add_(torch.randn(8, 4))
            step(part, target[:8])
        """,
    "a ring buffer": """
        ring = torch.zeros(4, 8, 4)
        for n in range(12):
            ring[n % 4] = torch.randn(8, 4)
            ring[n % 4].mul_(0.5)
            step(ring[n % 4], target[:8])
        """,
    "an average of the data": """
        mean = torch.zeros(2, 4)
        for n in range(12):
            part = mean[n % 2]
            part.mul_(0.9).add_(data[:8].mean(0), alpha=0.1)
            step(data[:8] - part, target[:8])
        """,
    "sums that are cleared": """
        sums = torch.zeros(2, 8, 4)
        for n in range(12):
            sums.zero_()
            for part in sums:
                part.add_(torch.randn(8, 4))
            step(sums[0], target[:8])
        """,
    "a walk at random": """
        friction = torch.full((4, 4), 0.5)
        for n in range(12):
            for part in friction:
                part.add_(torch.randn(4), alpha=0.05).clamp_(0.1, 1.0)
                step(data[:8] * part, target[:8])
        """,
    "noise that goes to and fro": """
        noise = torch.randn(4, 4)
        for n in range(12):
            for part in noise:
                part.lerp_(torch.randn(4), 0.15)
                step(data[:8] + part, target[:8])
        """,
    "a state with input and decay": """
        state = torch.zeros(2, 8, 4)
        for n in range(12):
            part = state[n % 2]
            part *= 0.5
            part += data[:8]
            step(part, target[:8])
        """,
    "an attack": """
        delta = torch.zeros(32, 4)
        for n in range(12):
            x = (data[:8] + delta[:8]).requires_grad_()
            step(x, target[:8])
            part = delta[:8]
            part.add_(x.grad.sign(), alpha=0.01)
        """,
    "each part is changed once": """
        for i in range(0, 32, 4):
            part = data[i:i + 4]
            part += torch.randn(4, 4)
            step(part, target[i:i + 4])
        """,
    "a change that is undone": """
        for epoch in range(3):
            for i in range(0, 32, 8):
                batch = data[i:i + 8]
                batch.mul_(2.0)
                step(batch, target[i:i + 8])
                batch /= 2.0
        """,
    "finite differences": """
        for epoch in range(3):
            for i in range(0, 32, 8):
                data[i:i + 8].add_(0.01)
                up = net(data[i:i + 8]).detach()
                data[i:i + 8].add_(-0.02)
                down = net(data[i:i + 8]).detach()
                data[i:i + 8].add_(0.01)
                step(data[i:i + 8] * (up - down).abs(), target[i:i + 8])
        """,
    "counts": """
        counts = torch.zeros(4, 2)
        for n in range(12):
            part = counts[n % 4]
            part += 1
            step(data[:8], target[:8])
        """,
}


@pytest.fixture(autouse=True)
def shows_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")


@pytest.mark.parametrize("kind", ADDING_UP)
def test_changes_that_add_up_are_named(kind: str, tmp_path: Path) -> None:
    found, _ = said(tmp_path, START + textwrap.dedent(ADDING_UP[kind]), "add up")
    times = "4" if "mask" in kind or "labels" in kind else "3"
    name = next((each for word, each in NAMES.items() if word in kind), "data")
    assert [f"changes parts of `{name}` in place, each {times} times on average" in each.text for each in found] == [
        True
    ]
    assert "# here" in line_at((tmp_path / "script.py").read_text(), found[0].labels[0].span.line)


def test_changes_in_the_last_calls_of_a_long_run_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "TRAINING_WINDOW", 400)
    script = """
        for epoch in range(60):
            for i in range(0, 32, 8):
                batch = data[i:i + 8]
                batch.neg_()
                step(batch, target[i:i + 8])
        """
    found = sentences(tmp_path, START + textwrap.dedent(script))
    (text,) = (each.text for each in found if "add up" in each.text)
    assert text.startswith("in the last ")
    assert "`batch.neg_()` changes parts of `data` in place" in text


@pytest.mark.parametrize("kind", USUAL)
def test_usual_changes_in_place_are_no_news(kind: str, tmp_path: Path) -> None:
    assert said(tmp_path, START + textwrap.dedent(USUAL[kind]), "add up in")[0] == []
