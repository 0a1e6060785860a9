"""Mixture density network for a signal with several possible answers per input."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def sample_signal(n, g):
    """Three branches whose probabilities depend on x."""
    x = torch.rand(n, 1, generator=g) * 4 - 2
    probs = torch.cat([torch.sigmoid(2 * x), 0.3 * torch.ones_like(x), torch.sigmoid(-2 * x)], dim=1)
    branch = torch.multinomial(probs, 1, generator=g)
    centre = torch.cat([torch.sin(x) + 2.0, 0.5 * x, torch.cos(x) - 2.5], dim=1)
    noise = torch.tensor([0.15, 0.3, 0.2])[branch]
    y = centre.gather(1, branch) + noise * torch.randn(n, 1, generator=g)
    return x, y


class MixtureHead(nn.Module):
    """Parameters of a Gaussian mixture over a scalar."""

    def __init__(self, width, n_components):
        super().__init__()
        self.to_weight = nn.Linear(width, n_components)
        self.to_mean = nn.Linear(width, n_components)
        self.to_log_scale = nn.Linear(width, n_components)
        with torch.no_grad():
            self.to_mean.bias.copy_(torch.linspace(-3, 3, n_components))

    def forward(self, h):
        weight = F.softmax(self.to_weight(h), dim=-1)
        return weight, self.to_mean(h), self.to_log_scale(h).clamp(-4, 3)


class MixtureDensityNet(nn.Module):
    def __init__(self, n_components=6, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = MixtureHead(width, n_components)

    def forward(self, x):
        return self.head(self.trunk(x))

    @torch.no_grad()
    def sample(self, x, g):
        weight, mean, log_scale = self(x)
        k = torch.multinomial(weight, 1, generator=g)
        eps = torch.randn(len(x), 1, generator=g)
        return mean.gather(1, k) + log_scale.gather(1, k).exp() * eps


def component_log_prob(y, mean, log_scale):
    z = (y - mean) * torch.exp(-log_scale)
    return -0.5 * z.square() - log_scale - 0.5 * math.log(2 * math.pi)


def mdn_loss(params, y):
    """Negative log-likelihood of y, summed over components in log space for stability."""
    weight, mean, log_scale = params
    return -torch.logsumexp(weight + component_log_prob(y, mean, log_scale), dim=-1).mean()


def fit(model, loader, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs * len(loader))
    for epoch in range(epochs):
        model.train()
        total, count = 0.0, 0
        for x, y in loader:
            loss = mdn_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            sched.step()
            total += loss.item() * len(x)
            count += len(x)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  train nll {total / count:.3f}")


def main():
    torch.manual_seed(21)
    g = torch.Generator().manual_seed(21)
    x, y = sample_signal(4000, g)
    x_val, y_val = sample_signal(1000, g)
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True, generator=g)
    model = MixtureDensityNet()
    fit(model, loader, epochs=9, lr=5e-3)
    model.eval()
    with torch.no_grad():
        print(f"validation nll {mdn_loss(model(x_val), y_val).item():.3f}")
    draws = model.sample(x_val, g)
    print(f"mean and spread of draws {draws.mean():.2f} {draws.std():.2f}, of data {y_val.mean():.2f} {y_val.std():.2f}")


if __name__ == "__main__":
    main()
