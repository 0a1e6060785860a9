"""Yield of apple orchards: a network trained on one valley is adapted to the next one by low-rank adapters.

The adaptation runs in short jobs; a job continues from the file of the job before. At the end the result of two
short jobs is compared with one long job.
"""
import copy
import io

import torch
import torch.nn as nn

FEATURES, HIDDEN, RANK, SEED = 12, 48, 4, 37


def valley(n, gen, shift):
    x = torch.randn(n, FEATURES, generator=gen)
    frost, rain, age = x[:, 0], x[:, 1], x[:, 2]
    y = torch.sin(frost + shift) + 0.6 * rain * age - 0.4 * (x[:, 3] + shift * x[:, 4]).abs()
    return x, (y + 0.05 * torch.randn(n, generator=gen)).unsqueeze(1)


class Adapted(nn.Module):
    """A linear layer plus a trainable product of two thin matrices."""

    def __init__(self, linear, rank, dropout=0.05):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.linear(x) + 2.0 * self.drop(x) @ self.down.t() @ self.up.t()


def adapt(base):
    model = copy.deepcopy(base).requires_grad_(False)
    for i, layer in enumerate(model):
        if isinstance(layer, nn.Linear):
            model[i] = Adapted(layer, RANK)
    return model


def epoch_pass(model, optimizer, x, y, order, batch=64):
    model.train()
    for idx in order.split(batch):
        loss = (model(x[idx]) - y[idx]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def error(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x) - y).pow(2).mean().item()


def pretrain(x, y):
    torch.manual_seed(SEED)
    base = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.Adam(base.parameters(), lr=3e-3)
    for _ in range(15):
        epoch_pass(base, optimizer, x, y, torch.randperm(len(x)))
    return base


def job(base, x, y, epochs, total, start=None, job_seed=0):
    """Run some epochs of the adaptation and return the model and the bytes of its file."""
    torch.manual_seed(job_seed)
    model, first = adapt(base), 0
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    if start is not None:
        state = torch.load(io.BytesIO(start))
        report = model.load_state_dict(state["adapters"], strict=False)
        assert not report.unexpected_keys
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first = state["epoch"]
    for epoch in range(first, first + epochs):
        torch.manual_seed(1000 * SEED + epoch)
        epoch_pass(model, optimizer, x, y, torch.randperm(len(x)))
        schedule.step()
    names = {n for n, p in model.named_parameters() if p.requires_grad}
    file = io.BytesIO()
    torch.save({"adapters": {k: v for k, v in model.state_dict().items() if k in names},
                "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": first + epochs}, file)
    return model, file.getvalue()


if __name__ == "__main__":
    gen = torch.Generator().manual_seed(SEED)
    base = pretrain(*valley(2000, gen, 0.0))
    x, y = valley(600, gen, 0.7)
    test = valley(500, gen, 0.7)
    print(f"base on the new valley  {error(base, *test):.4f}")
    half, file = job(base, x, y, 10, 20, job_seed=1)
    print(f"after the first job     {error(half, *test):.4f}   file {len(file)} bytes")
    model, _ = job(base, x, y, 10, 20, start=file, job_seed=2)
    print(f"after the second job    {error(model, *test):.4f}")
    long_run, _ = job(base, x, y, 20, 20, job_seed=1)
    gap = max((a - b).abs().max().item() for a, b in zip(model.parameters(), long_run.parameters()))
    print(f"one long job            {error(long_run, *test):.4f}   largest difference of a weight {gap:.1e}")
