"""A hypernetwork that writes the head of a regressor from a learned embedding of each curve family."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Hypernet(nn.Module):
    def __init__(self, families, emb, n_out, chunk=64):
        super().__init__()
        self.n_out = n_out
        chunks = math.ceil(n_out / chunk)
        self.family = nn.Embedding(families, emb)
        self.place = nn.Parameter(0.5 * torch.randn(chunks, emb))
        self.net = nn.Sequential(nn.Linear(2 * emb, 64), nn.ReLU(), nn.Linear(64, chunk))
        nn.init.normal_(self.net[-1].weight, std=0.06)

    def forward(self, k):
        code = self.family(k).expand(len(self.place), -1)
        return self.net(torch.cat([code, self.place], dim=1)).flatten()[: self.n_out]


class ConditionedRegressor(nn.Module):
    def __init__(self, families, width=24, emb=8):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))
        size = parameters_to_vector(self.head.parameters()).numel()
        self.hyper = Hypernet(families, emb, size)

    def forward(self, x, k):
        theta = self.hyper(k)
        vector_to_parameters(theta, self.head.parameters())
        return self.head(self.trunk(x)), theta


class CurveFamilies:
    """Each family is a sine with its own phase, frequency and offset."""

    def __init__(self, families, generator):
        self.phase = 2 * math.pi * torch.rand(families, generator=generator)
        self.freq = 1.0 + torch.rand(families, generator=generator)
        self.shift = torch.randn(families, generator=generator)
        self.generator = generator

    def batch(self, k, n):
        x = 4 * torch.rand(n, 1, generator=self.generator) - 2
        noise = 0.05 * torch.randn(n, 1, generator=self.generator)
        return x, torch.sin(self.freq[k] * x + self.phase[k]) + self.shift[k] + noise


def train_step(model, optimizer, x, y, k, decay=1e-4):
    prediction, theta = model(x, k)
    fit = F.mse_loss(prediction, y)
    loss = fit + decay * theta.square().sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return fit.item()


@torch.no_grad()
def evaluate(model, curves, families, n=128):
    model.eval()
    errors = []
    for k in range(families):
        x, y = curves.batch(k, n)
        prediction, _ = model(x, torch.tensor(k))
        errors.append(F.mse_loss(prediction, y).item())
    model.train()
    return errors


def main():
    torch.manual_seed(5)
    families = 6
    curves = CurveFamilies(families, torch.Generator().manual_seed(8))
    model = ConditionedRegressor(families)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=220, eta_min=2e-4)
    running = None
    for step in range(220):
        k = int(torch.randint(0, families, (1,)))
        x, y = curves.batch(k, 64)
        fit = train_step(model, optimizer, x, y, torch.tensor(k))
        scheduler.step()
        running = fit if running is None else 0.97 * running + 0.03 * fit
        if (step + 1) % 55 == 0:
            print(f"step {step + 1:4d}  running mse {running:.4f}")
    errors = evaluate(model, curves, families)
    for k, error in enumerate(errors):
        print(f"family {k}: test mse {error:.4f}")
    return model, errors


if __name__ == "__main__":
    main()
