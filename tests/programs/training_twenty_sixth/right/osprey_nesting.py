"""Regress nest occupancy from habitat features; weights are averaged (EMA) for validation and for the final model."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Ema:
    def __init__(self, model, decay=0.98):
        self.model = model
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name].mul_(self.decay).add_(param.data, alpha=1.0 - self.decay)

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


class HabitatNet(nn.Module):
    def __init__(self, n_features=12, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_features, width), nn.LayerNorm(width), nn.SiLU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def make_sites(n, gen):
    x = torch.randn(n, 12, generator=gen)
    y = torch.sin(x[:, 0]) * x[:, 1] + 0.5 * x[:, 2].abs() - 0.3 * x[:, 3] * x[:, 4]
    return x, y + 0.3 * torch.randn(n, generator=gen)


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    mse = F.mse_loss(model(x), y).item()
    model.train()
    return mse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    x, y = make_sites(3000, gen)
    x_val, y_val = make_sites(1000, gen)

    model = HabitatNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    ema = Ema(model)
    ema.register()

    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x), generator=gen).split(args.batch_size):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            ema.update()
        raw = validate(model, x_val, y_val)
        ema.apply_shadow()
        averaged = validate(model, x_val, y_val)
        ema.restore()
        if (epoch + 1) % 3 == 0:
            print(f"epoch {epoch + 1:2d}  val mse raw {raw:.4f}  ema {averaged:.4f}")

    raw_weights = {k: v.clone() for k, v in model.state_dict().items()}
    ema.apply_shadow()  # the averaged weights are the ones that are shipped
    final = validate(model, x_val, y_val)
    print(f"final (ema) val mse {final:.4f}")
    return model, ema, raw_weights, final


if __name__ == "__main__":
    model, ema, raw_weights, final = main()
