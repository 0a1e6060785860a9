"""Importance-weighted autoencoder on two-peak spectra, trained with the doubly reparameterized gradient (DReG)."""
import math

import torch
from torch import nn
from torch.distributions import Independent, Normal

POINTS = 20
LATENT = 3
SAMPLES = 8
BATCH = 64
STEPS = 140


def make_spectra(n):
    """Two peaks of random position and height on a slowly varying background."""
    t = torch.linspace(0, 1, POINTS)
    centre = 0.15 + 0.7 * torch.rand(n, 2, 1)
    height = 0.4 + 0.8 * torch.rand(n, 2, 1)
    peaks = (height * torch.exp(-0.5 * ((t - centre) / 0.08) ** 2)).sum(dim=1)
    return peaks + 0.2 * torch.randn(n, 1) * t + 0.05 * torch.randn(n, POINTS)


class GaussianHead(nn.Module):
    def __init__(self, fan_in, fan_out, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(fan_in, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.mean = nn.Linear(width, fan_out)
        self.raw = nn.Linear(width, fan_out)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), nn.functional.softplus(self.raw(h)) + 1e-3


class Spectra(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = GaussianHead(POINTS, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, POINTS))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))
        self.register_buffer("zero", torch.zeros(LATENT))
        self.register_buffer("one", torch.ones(LATENT))

    def prior(self):
        return Independent(Normal(self.zero, self.one), 1)

    def likelihood(self, z):
        return Independent(Normal(self.decoder(z), self.log_noise.exp()), 1)

    def log_weights(self, x, samples, frozen_density):
        mean, std = self.encoder(x)
        z = Independent(Normal(mean, std), 1).rsample((samples,))
        if frozen_density:
            mean, std = mean.detach(), std.detach()
        posterior = Independent(Normal(mean, std), 1)
        log_w = self.prior().log_prob(z) + self.likelihood(z).log_prob(x) - posterior.log_prob(z)
        return z, log_w


def dreg_loss(model, x):
    z, log_w = model.log_weights(x, SAMPLES, frozen_density=True)
    with torch.no_grad():
        weight = torch.softmax(log_w, dim=0)
        z.register_hook(lambda grad: weight.unsqueeze(-1) * grad)
    return -(weight * log_w).sum(dim=0).mean()


@torch.no_grad()
def bound(model, x, samples=64):
    _, log_w = model.log_weights(x, samples, frozen_density=False)
    return (torch.logsumexp(log_w, dim=0) - math.log(samples)).mean().item()


@torch.no_grad()
def effective_samples(model, x):
    _, log_w = model.log_weights(x, SAMPLES, frozen_density=False)
    weight = torch.softmax(log_w, dim=0)
    return (1.0 / weight.pow(2).sum(dim=0)).mean().item()


def main():
    torch.manual_seed(19)
    train, test = make_spectra(3000), make_spectra(400)
    model = Spectra()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    for step in range(STEPS):
        x = train[torch.randint(len(train), (BATCH,))]
        loss = dreg_loss(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 45 == 0 or step == STEPS - 1:
            print(
                f"step {step:4d}  test bound {bound(model, test):8.3f}"
                f"  effective samples {effective_samples(model, test):.2f}  noise {model.log_noise.exp().item():.3f}"
            )
    return model, train, test


if __name__ == "__main__":
    model, train, test = main()
