import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.strength, None


class Adversarial(nn.Module):
    def __init__(self, n_in=12, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.label = nn.Linear(16, classes)
        self.site = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
        self.strength = 0.0

    def forward(self, x):
        h = self.features(x)
        return self.label(h), self.site(Reverse.apply(h, self.strength))


class RampUp:
    def __init__(self, model, total, peak=0.5):
        self.model, self.total, self.peak, self.count = model, total, peak, 0

    def step(self):
        self.model.strength = self.peak * (2 / (1 + math.exp(-10 * self.count / self.total)) - 1)
        self.count += 1


def make_site(n, centres, shift):
    y = torch.randint(0, len(centres), (n,))
    return centres[y] + torch.randn(n, centres.shape[1]) + shift, y


def main(steps=80):
    torch.manual_seed(0)
    centres = 1.2 * torch.randn(3, 12)
    shift = torch.zeros(12)
    shift[0] = 2.0
    model = Adversarial()
    ramp = RampUp(model, steps)
    optimizer = torch.optim.Adam(
        [
            {"params": model.features.parameters()},
            {"params": model.label.parameters()},
            {"params": model.site.parameters(), "lr": 3e-3},
        ],
        lr=1e-3,
    )
    for step in range(steps):
        ramp.step()
        xs, ys = make_site(48, centres, 0.0)
        xt, _ = make_site(48, centres, shift)
        label_logits, site_logits = model(torch.cat([xs, xt]))
        site = torch.cat([torch.zeros(48), torch.ones(48)]).long()
        label_loss = F.cross_entropy(label_logits[:48], ys)
        site_loss = F.cross_entropy(site_logits, site)
        optimizer.zero_grad()
        (label_loss + site_loss).backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} label {label_loss.item():.4f} site {site_loss.item():.4f}")
    return model


if __name__ == "__main__":
    model = main()
