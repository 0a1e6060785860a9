"""One-class monitoring of pumps: autoencoder warm start, then Deep SVDD (Ruff et al., 2018)."""
import numpy as np
import torch
from torch import nn

N_SENSORS, WINDOW = 4, 32


def make_windows(n, rng, fault=None):
    t = np.arange(WINDOW)
    freq = rng.normal(0.2, 0.01, (n, 1, 1))
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    lag = np.array([[0.0], [0.5], [1.2], [2.0]])
    x = rng.uniform(0.8, 1.2, (n, 1, 1)) * np.sin(2 * np.pi * freq * t + phase - lag)
    if fault == "cavitation":
        x[:, 1] += 0.7 * rng.normal(size=(n, WINDOW))
    elif fault == "misalignment":
        x = x + 0.6 * np.sin(4 * np.pi * freq * t + 2 * phase)
    x = x + 0.1 * rng.normal(size=x.shape)
    return torch.tensor(x.reshape(n, -1), dtype=torch.float32)


class Scaler(nn.Module):
    """Standardizes with the statistics of the normal training data."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("std", torch.ones(n))

    @torch.no_grad()
    def fit(self, x):
        self.mean.copy_(x.mean(0))
        self.std.copy_(x.std(0))

    def forward(self, x):
        return (x - self.mean) / self.std


class Encoder(nn.Module):
    def __init__(self, dim=16, hidden=64):
        super().__init__()
        self.scaler = Scaler(N_SENSORS * WINDOW)
        self.fc1 = nn.Linear(N_SENSORS * WINDOW, hidden, bias=False)
        self.fc2 = nn.Linear(hidden, dim, bias=False)
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(self.scaler(x))))


def batches(x, size=128):
    return (x[idx] for idx in torch.randperm(len(x)).split(size))


def warm_start(encoder, x, epochs):
    decoder = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.1), nn.Linear(64, N_SENSORS * WINDOW))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(epochs):
        for batch in batches(x):
            loss = nn.functional.mse_loss(decoder(encoder(batch)), encoder.scaler(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def choose_center(encoder, x, eps=0.1):
    """Mean embedding of the normal data; entries near zero are moved away from it."""
    center = encoder(x).mean(0)
    small = center.abs() < eps
    center[small] = torch.where(center[small] < 0, -eps, eps)
    return center


def train_svdd(encoder, center, x, epochs):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[epochs // 2], gamma=0.1)
    for _ in range(epochs):
        total = 0.0
        for batch in batches(x):
            loss = (encoder(batch) - center).pow(2).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        schedule.step()
    print(f"svdd: mean squared distance {total / len(x):.4f}")


def auc(normal, anomalous):
    return (anomalous[:, None] > normal[None, :]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(31)
    rng = np.random.default_rng(31)
    train, normal = make_windows(4000, rng), make_windows(800, rng)
    encoder = Encoder()
    encoder.scaler.fit(train)
    warm_start(encoder, train, epochs=8)
    center = choose_center(encoder, train)
    score = torch.no_grad()(lambda x: (encoder(x) - center).pow(2).sum(1))
    faults = {name: make_windows(800, rng, name) for name in ("cavitation", "misalignment")}
    for stage in ("warm start", "deep svdd"):
        if stage == "deep svdd":
            train_svdd(encoder, center, train, epochs=24)
        alarm = (score(normal) > score(train).quantile(0.95)).float().mean()
        print(f"{stage}: false alarms {alarm:.3f}  "
              + "  ".join(f"{k} auc {auc(score(normal), score(v)):.3f}" for k, v in faults.items()))
