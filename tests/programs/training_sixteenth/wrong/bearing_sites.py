"""Vibration monitoring: one shared encoder for all sites, one small fault head per site.

The encoder is trained at the pilot site. A new site gets its own head on the released encoder, which stays as it
is, so that the heads already in production need no new validation.
"""
import numpy as np
import torch
import torch.nn as nn

WINDOW = 128


def simulate_site(n, rng, speed, gain, offset, noise):
    """Vibration windows; a faulty bearing adds short impacts at a fixed spacing."""
    t = np.arange(WINDOW) / WINDOW
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    x = np.sin(2 * np.pi * speed * t + phase) + 0.4 * np.sin(4 * np.pi * speed * t + 2 * phase)
    faulty = rng.random(n) < 0.4
    start = rng.integers(0, 16, n)
    for i in np.flatnonzero(faulty):
        x[i, start[i]::16] += rng.uniform(0.6, 1.6)
    x = gain * (x + noise * rng.normal(size=x.shape)) + offset
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(faulty, dtype=torch.float32)


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        layers, channels = [], 1
        for out in (width, 2 * width, 2 * width):
            layers += [nn.Conv1d(channels, out, 7, stride=2, padding=3), nn.BatchNorm1d(out), nn.ReLU()]
            channels = out
        self.layers = nn.Sequential(*layers)
        self.out_dim = 2 * channels

    def forward(self, x):
        h = self.layers(x)
        return torch.cat([h.mean(-1), h.amax(-1)], dim=1)


class FaultDetector(nn.Module):
    """Shared encoder and a dictionary of heads, one for each site."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.heads = nn.ModuleDict()

    def add_site(self, site):
        self.heads[site] = nn.Sequential(nn.Linear(self.encoder.out_dim, 32), nn.ReLU(), nn.Linear(32, 1))
        return self.heads[site].parameters()

    def forward(self, x, site):
        return self.heads[site](self.encoder(x)).squeeze(1)


def train_site(model, site, data, params, epochs, lr=2e-3, batch_size=64):
    params = [p for p in params if p.requires_grad]
    optimizer = torch.optim.Adam(params, lr=lr)
    criterion = nn.BCEWithLogitsLoss()
    x, y = data
    model.train()
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        total = 0.0
        for idx in order.split(batch_size):
            loss = criterion(model(x[idx], site), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
    print(f"{site}: trained {sum(p.numel() for p in params)} parameters, last loss {total / len(x):.4f}")


@torch.no_grad()
def accuracy(model, site, data):
    model.eval()
    x, y = data
    return ((model(x, site) > 0).float() == y).float().mean().item()


def main(seed=21):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    pilot = dict(speed=3.0, gain=1.0, offset=0.0, noise=0.25)
    second = dict(speed=4.0, gain=1.4, offset=0.2, noise=0.25)
    pilot_train, pilot_test = simulate_site(1200, rng, **pilot), simulate_site(1000, rng, **pilot)
    second_train, second_test = simulate_site(1200, rng, **second), simulate_site(1000, rng, **second)

    model = FaultDetector()
    model.add_site("pilot")
    train_site(model, "pilot", pilot_train, model.parameters(), epochs=5)
    report = {"pilot at release": accuracy(model, "pilot", pilot_test)}

    model.encoder.requires_grad_(False)
    train_site(model, "second", second_train, model.add_site("second"), epochs=5)
    report["second"] = accuracy(model, "second", second_test)
    report["pilot after rollout"] = accuracy(model, "pilot", pilot_test)
    for name, value in report.items():
        print(f"{name:>20}: accuracy {value:.3f}")
    return model, report


if __name__ == "__main__":
    model, report = main()
