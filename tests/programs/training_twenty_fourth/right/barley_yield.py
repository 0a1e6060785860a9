"""Barley yield from weather and soil tables; memory-lean training with one Adam per parameter."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_WEATHER, N_SOILS = 10, 6


def make_fields(count, seed):
    rng = np.random.default_rng(seed)
    weather = rng.normal(size=(count, N_WEATHER))
    soil = rng.integers(0, N_SOILS, size=count)
    fertility = np.linspace(-1.0, 1.5, N_SOILS)[soil]
    yield_ = (2 * np.tanh(weather[:, 0] + fertility) - 0.8 * weather[:, 1] ** 2
              + weather[:, 2] * weather[:, 3] + fertility + 0.2 * rng.normal(size=count))
    return (torch.tensor(weather, dtype=torch.float32), torch.tensor(soil),
            torch.tensor(yield_, dtype=torch.float32))


class YieldNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.soil = nn.Embedding(N_SOILS, 4)
        self.layers = nn.Sequential(
            nn.Linear(N_WEATHER + 4, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, weather, soil):
        return self.layers(torch.cat([weather, self.soil(soil)], dim=-1)).squeeze(-1)


class BackwardAdam:
    """Applies Adam to each parameter as soon as its gradient is ready and frees the gradient at once."""

    def __init__(self, model, lr):
        self.optimizers = {p: torch.optim.Adam([p], lr=lr) for p in model.parameters() if p.requires_grad}
        self.base_lr = lr
        self.handles = [p.register_post_accumulate_grad_hook(self.apply) for p in self.optimizers]

    def apply(self, param):
        optimizer = self.optimizers[param]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def set_progress(self, fraction):
        lr = self.base_lr * 0.5 * (1 + math.cos(math.pi * fraction))
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = lr
        return lr


@torch.no_grad()
def rmse(model, fields):
    model.eval()
    weather, soil, target = fields
    return F.mse_loss(model(weather, soil), target).sqrt().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args([])
    torch.manual_seed(6)
    weather, soil, target = make_fields(1500, seed=1)
    test = make_fields(600, seed=2)
    model = YieldNet()
    updates = BackwardAdam(model, args.lr)
    for epoch in range(args.epochs):
        model.train()
        lr = updates.set_progress(epoch / args.epochs)
        total = 0.0
        for rows in torch.randperm(len(target)).split(args.batch_size):
            loss = F.mse_loss(model(weather[rows], soil[rows]), target[rows])
            loss.backward()
            total += loss.item() * len(rows)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:2d}  lr {lr:.5f}  train mse {total / len(target):.3f}  test rmse {rmse(model, test):.3f}")
    return model


if __name__ == "__main__":
    model = main()
