"""Ensemble with randomised prior functions: each member is a trained network plus a random one that stays as it was
drawn. Members see different bootstrap samples; their disagreement is the uncertainty."""
from dataclasses import dataclass

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


@dataclass
class Settings:
    members: int = 6
    width: int = 32
    prior_scale: float = 1.5
    epochs: int = 300
    lr: float = 1e-2


def network(width):
    return nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


class Member(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.trained = network(settings.width)
        self.prior = network(settings.width).requires_grad_(False)
        self.scale = settings.prior_scale

    def forward(self, x):
        return self.trained(x) + self.scale * self.prior(x)


def fit(settings, x, y):
    ensemble = nn.ModuleList([Member(settings) for _ in range(settings.members)])
    optimizer = torch.optim.Adam([p for p in ensemble.parameters() if p.requires_grad], lr=settings.lr)
    weight = torch.stack([torch.bincount(torch.randint(len(x), (len(x),)), minlength=len(x)) for _ in ensemble])
    weight = weight.float().unsqueeze(2) / len(x)
    for epoch in range(settings.epochs):
        predictions = torch.stack([member(x) for member in ensemble])
        loss = (weight * (predictions - y) ** 2).sum(dim=(1, 2)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 75 == 0:
            print(f"epoch {epoch}  mean loss per member {loss.item() / settings.members:.4f}")
    return ensemble


def main():
    settings = Settings()
    x = torch.cat([torch.linspace(-2, -0.7, 30), torch.linspace(0.7, 2, 30)]).unsqueeze(1)
    y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
    ensemble = fit(settings, x, y)
    with torch.no_grad():
        inside = torch.stack([m(x) for m in ensemble])
        far = torch.stack([m(torch.tensor([[-4.0], [0.0], [4.0]])) for m in ensemble])
    error = ((inside.mean(0) - torch.sin(2 * x)) ** 2).mean().sqrt().item()
    print(f"error of the mean on the data {error:.3f}")
    print(f"spread on the data {inside.std(0).mean().item():.3f}, away from it",
          [round(s, 3) for s in far.std(0).squeeze(1).tolist()])


if __name__ == "__main__":
    main()
