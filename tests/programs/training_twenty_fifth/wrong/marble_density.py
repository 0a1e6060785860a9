"""Density of a 6-d table with a RealNVP flow: train, keep the best checkpoint, score the test rows from it."""
import os
import tempfile

import torch
from torch import nn


def make_table(n, generator):
    """Correlated, partly curved columns, standardised by the caller."""
    z = torch.randn(n, 6, generator=generator)
    a, b, c = z[:, 0], z[:, 1], z[:, 2]
    columns = [a, a ** 2 * 0.6 + 0.3 * b, torch.sin(2 * a) + 0.2 * c, c, 0.5 * c ** 2 + 0.25 * z[:, 3],
               0.8 * b + 0.3 * z[:, 4]]
    return torch.stack(columns, dim=1)


class Coupling(nn.Module):
    """Affine coupling: the first half moves the second half."""

    def __init__(self, dim, hidden=48):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2 * (dim - self.half)),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        kept, moved = x[:, :self.half], x[:, self.half:]
        scale, shift = self.net(kept).chunk(2, dim=1)
        scale = torch.tanh(scale)
        return torch.cat([kept, moved * scale.exp() + shift], dim=1), scale.sum(dim=1)


class Shuffle(nn.Module):
    """Fixed random order of the columns, so that every column gets its turn; volume preserving."""

    def __init__(self, dim):
        super().__init__()
        self.order = torch.randperm(dim)

    def forward(self, x):
        return x[:, self.order], x.new_zeros(len(x))


class Flow(nn.Module):
    def __init__(self, dim, depth=3):
        super().__init__()
        self.steps = nn.ModuleList(step(dim) for _ in range(depth) for step in (Coupling, Shuffle))
        self.base = torch.distributions.Normal(0.0, 1.0)

    def log_prob(self, x):
        total = x.new_zeros(len(x))
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        return self.base.log_prob(x).sum(dim=1) + total


def fit(train, valid, path, epochs=12, batch=200):
    flow = Flow(train.shape[1])
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.3)
    best = float("inf")
    for epoch in range(epochs):
        for rows in train[torch.randperm(len(train))].split(batch):
            loss = -flow.log_prob(rows).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            nll = -flow.log_prob(valid).mean().item()
        if nll < best:
            best = nll
            torch.save({"flow": flow.state_dict(), "epoch": epoch}, path)
    return flow, best


def score(rows, path):
    """What the scoring job does: a new process has only the file."""
    checkpoint = torch.load(path)
    flow = Flow(rows.shape[1])
    flow.load_state_dict(checkpoint["flow"])
    flow.eval()
    with torch.no_grad():
        return flow.log_prob(rows), checkpoint["epoch"]


def main():
    torch.manual_seed(8)
    table = make_table(5000, torch.Generator().manual_seed(8))
    train, valid, test = table.split([3500, 500, 1000])
    mean, std = train.mean(0), train.std(0)
    train, valid, test = [(part - mean) / std for part in (train, valid, test)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "flow.pt")
        flow, best = fit(train, valid, path)
        log_prob, epoch = score(test, path)
    cut = log_prob.quantile(0.01).item()
    print(f"checkpoint of epoch {epoch + 1}: test log-density {log_prob.mean():.3f}, 1% rarest below {cut:.2f}")


if __name__ == "__main__":
    main()
