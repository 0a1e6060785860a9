"""Predict peat moisture from near-infrared spectra: a frozen, pretrained front end plus a sparse linear readout."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    bands: int = 40
    features: int = 160
    n_train: int = 120
    n_test: int = 1000
    steps: int = 600
    lr: float = 1e-2
    l1: float = 0.2
    noise: float = 0.6
    seed: int = 8


class FrontEnd(nn.Module):
    """Stands for the spectral encoder shipped with the instrument; its weights stay as they are."""

    def __init__(self, bands, features):
        super().__init__()
        self.filters = nn.Linear(bands, features)
        nn.init.normal_(self.filters.weight, std=bands ** -0.5)
        nn.init.uniform_(self.filters.bias, -1.0, 1.0)

    def forward(self, spectra):
        return torch.sin(2.0 * self.filters(spectra))


class MoistureModel(nn.Module):
    def __init__(self, front_end, features):
        super().__init__()
        self.front_end = front_end
        self.readout = nn.Linear(features, 1)
        for p in self.front_end.parameters():
            p.requires_grad_(False)

    def forward(self, spectra):
        return self.readout(self.front_end(spectra)).squeeze(-1)


def make_field_data(front_end, cfg):
    """Moisture depends on a handful of the encoder's features only."""
    weights = torch.zeros(cfg.features)
    chosen = torch.randperm(cfg.features)[:8]
    weights[chosen] = torch.randn(8).sign() * (0.8 + torch.rand(8))

    def draw(n, noise):
        spectra = torch.randn(n, cfg.bands)
        with torch.no_grad():
            moisture = front_end(spectra) @ weights
        return spectra, moisture + noise * torch.randn(n)

    return draw(cfg.n_train, cfg.noise), draw(cfg.n_test, 0.0)


def fit(model, train, test, cfg):
    spectra, moisture = train
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.Adam(trainable, lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    for step in range(1, cfg.steps + 1):
        model.train()
        residual = model(spectra) - moisture
        penalty = sum(p.abs().sum() for p in trainable)
        loss = residual.pow(2).mean() + cfg.l1 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step:4d}  objective {loss.item():.4f}  test rmse {rmse(model, test):.4f}")


@torch.no_grad()
def rmse(model, data):
    model.eval()
    spectra, moisture = data
    return (model(spectra) - moisture).pow(2).mean().sqrt().item()


def main():
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    front_end = FrontEnd(cfg.bands, cfg.features)
    model = MoistureModel(front_end, cfg.features)
    train, test = make_field_data(front_end, cfg)
    baseline = (test[1] - train[1].mean()).pow(2).mean().sqrt().item()
    print(f"{cfg.n_train} samples, {cfg.features} features, l1 = {cfg.l1}, predicting the mean gives {baseline:.4f}")
    fit(model, train, test, cfg)
    score = rmse(model, test)
    print(f"final: train rmse {rmse(model, train):.4f}, test rmse {score:.4f}")
    return model, score


if __name__ == "__main__":
    model, score = main()
