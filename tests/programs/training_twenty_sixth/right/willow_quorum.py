"""Average the weights of the last epochs of a sensor regressor and compare with the final weights."""
import argparse
import copy
import io

import torch
import torch.nn.functional as F
from torch import nn


class Regressor(nn.Module):
    def __init__(self, n_channels=4, width=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(n_channels, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2), nn.BatchNorm1d(width), nn.ReLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.features(x).mean(-1)).squeeze(-1)


def recordings(n, g, length=32):
    t = torch.arange(length) / length
    freq = 1 + 4 * torch.rand(n, 4, 1, generator=g)
    amp = torch.rand(n, 4, 1, generator=g)
    x = amp * torch.sin(2 * torch.pi * (freq * t + torch.rand(n, 4, 1, generator=g)))
    y = (amp[:, 0] * freq[:, 0] - amp[:, 1] * freq[:, 2] / 3).squeeze(-1)
    return x + 0.1 * torch.randn(x.shape, generator=g), y + 0.3 * torch.randn(n, generator=g)


class WeightAverage:
    def __init__(self, model):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.n = 0

    @torch.no_grad()
    def update(self, model):
        self.n += 1
        for avg, new in zip(self.model.parameters(), model.parameters()):
            avg.lerp_(new, 1.0 / self.n)


@torch.no_grad()
def refresh_statistics(model, x, batch):
    """Recompute the normalisation statistics that belong to the current weights."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
    kept = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # cumulative average over the batches
    model.train()
    for part in x.split(batch):
        model(part)
    for m, momentum in zip(norms, kept):
        m.momentum = momentum
    model.eval()


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return F.mse_loss(model(x), y).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--average-from", type=int, default=5)
    ap.add_argument("--batch", type=int, default=50)
    ap.add_argument("--lr", type=float, default=0.05)
    args, _ = ap.parse_known_args()
    torch.manual_seed(31)
    g = torch.Generator().manual_seed(31)
    x, y = recordings(1000, g)
    x_test, y_test = recordings(600, g)

    model = Regressor()
    average = WeightAverage(model)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(x), generator=g).split(args.batch):
            opt.zero_grad()
            F.mse_loss(model(x[idx]), y[idx]).backward()
            opt.step()
        if epoch >= args.average_from:
            average.update(model)
        print(f"epoch {epoch}  test mse {evaluate(model, x_test, y_test):.4f}")

    refresh_statistics(average.model, x, args.batch)
    print(f"average of {average.n} epochs  test mse {evaluate(average.model, x_test, y_test):.4f}")

    file = io.BytesIO()
    torch.save(average.model.state_dict(), file)
    file.seek(0)
    restored = Regressor()
    restored.load_state_dict(torch.load(file))
    print(f"restored from file     test mse {evaluate(restored, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
