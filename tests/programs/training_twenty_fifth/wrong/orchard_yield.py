"""Cross-validated error of a small network for the yield of apple plots (90 plots, 25 measurements)."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    plots: int = 90
    measurements: int = 25
    width: int = 64
    folds: int = 6
    epochs: int = 60
    batch: int = 16
    lr: float = 3e-3
    decay: float = 1e-4
    seed: int = 31


def survey(cfg, generator):
    """Soil, weather and tree measurements; most of the yield is weather that nobody measured."""
    x = torch.randn(cfg.plots, cfg.measurements, generator=generator)
    known = 1.2 * x[:, 0] + 0.8 * torch.relu(x[:, 1]) - 0.7 * x[:, 2] * (x[:, 3] > 0)
    return x, 14.0 + known + 1.5 * torch.randn(cfg.plots, generator=generator)


def k_folds(n, k, generator):
    parts = torch.randperm(n, generator=generator).chunk(k)
    for i in range(k):
        yield torch.cat([p for j, p in enumerate(parts) if j != i]), parts[i]


class Scaler:
    """Zero mean and unit spread, with the statistics of the rows given to it."""

    def __init__(self, rows):
        self.mean, self.std = rows.mean(0), rows.std(0).clamp_min(1e-6)

    def __call__(self, rows):
        return (rows - self.mean) / self.std

    def undo(self, rows):
        return rows * self.std + self.mean


class YieldNet(nn.Module):
    def __init__(self, n_in, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_in, width), nn.LayerNorm(width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def train_fold(model, x, y, cfg):
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.decay)
    model.train()
    for _ in range(cfg.epochs):
        for idx in torch.randperm(len(x)).split(cfg.batch):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def cross_validate(cfg):
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed)
    x, y = survey(cfg, generator)

    # every fold begins from the same weights, so that the folds are comparable
    model = YieldNet(cfg.measurements, cfg.width)
    initial = model.state_dict()

    errors = []
    for fold, (train_idx, test_idx) in enumerate(k_folds(cfg.plots, cfg.folds, generator)):
        model.load_state_dict(initial)
        scale_x, scale_y = Scaler(x[train_idx]), Scaler(y[train_idx])
        last = train_fold(model, scale_x(x[train_idx]), scale_y(y[train_idx]), cfg)

        model.eval()
        with torch.no_grad():
            prediction = scale_y.undo(model(scale_x(x[test_idx])))
        rmse = (prediction - y[test_idx]).square().mean().sqrt().item()
        errors.append(rmse)
        print(f"fold {fold + 1}: train loss {last:.4f}  test rmse {rmse:.3f} t/ha")
    return torch.tensor(errors)


if __name__ == "__main__":
    cfg = Config()
    errors = cross_validate(cfg)
    print(f"cross-validated rmse {errors.mean():.3f} +- {errors.std():.3f} t/ha")
