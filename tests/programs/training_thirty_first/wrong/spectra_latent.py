"""Compress synthetic emission spectra into a small latent space with a variational autoencoder.

Every spectrum has two lines whose positions vary; the latent code should describe the two positions.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS = 48
LATENT = 3


def make_spectra(count, generator):
    grid = torch.linspace(0.0, 1.0, CHANNELS)
    first = 0.1 + 0.35 * torch.rand(count, 1, generator=generator)
    second = 0.55 + 0.35 * torch.rand(count, 1, generator=generator)
    spectra = torch.exp(-0.5 * ((grid - first) / 0.06) ** 2)
    spectra = spectra + 0.7 * torch.exp(-0.5 * ((grid - second) / 0.08) ** 2)
    return spectra + 0.02 * torch.randn(count, CHANNELS, generator=generator)


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CHANNELS, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, LATENT)
        self.log_var = nn.Linear(hidden, LATENT)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_var(h).clamp(-8.0, 4.0)


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(LATENT, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, CHANNELS)
        )

    def forward(self, z):
        return self.body(z)


class SpectraVAE(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = Encoder(hidden)
        self.decoder = Decoder(hidden)

    def draw(self, mean, log_var):
        std = torch.exp(0.5 * log_var)
        return torch.normal(mean, std)

    def forward(self, x):
        mean, log_var = self.encoder(x)
        z = self.draw(mean, log_var) if self.training else mean
        return self.decoder(z), mean, log_var


def elbo_terms(recon, x, mean, log_var, sigma=0.1):
    """Negative log-likelihood of a Gaussian with fixed width, and the divergence from the unit normal."""
    nll = F.mse_loss(recon, x, reduction="none").sum(dim=1) / (2 * sigma**2)
    nll = nll + CHANNELS * math.log(sigma)
    kl = 0.5 * (mean.pow(2) + log_var.exp() - 1.0 - log_var).sum(dim=1)
    return nll.mean(), kl.mean()


def train(model, spectra, steps=300, batch=64, warmup=100):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    model.train()
    for step in range(steps):
        x = spectra[torch.randint(len(spectra), (batch,))]
        recon, mean, log_var = model(x)
        nll, kl = elbo_terms(recon, x, mean, log_var)
        beta = min(1.0, (step + 1) / warmup)
        loss = nll + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 100 == 99:
            print(f"step {step + 1:4d}  nll {nll.item():8.2f}  kl {kl.item():6.2f}")
    return history


@torch.no_grad()
def evaluate(model, spectra):
    model.eval()
    recon, mean, _ = model(spectra)
    model.train()
    return F.mse_loss(recon, spectra).item(), mean.var(dim=0)


if __name__ == "__main__":
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    train_set = make_spectra(1024, generator)
    test_set = make_spectra(256, generator)
    model = SpectraVAE()
    history = train(model, train_set)
    test_mse, usage = evaluate(model, test_set)
    print(f"test mse {test_mse:.5f}")
    print("variance of the latent means:", " ".join(f"{v:.3f}" for v in usage.tolist()))
