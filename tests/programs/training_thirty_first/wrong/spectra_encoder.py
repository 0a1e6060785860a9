"""A variational autoencoder of absorption spectra: two hidden concentrations shape 32 channels."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CHANNELS = 32
LATENT = 2


def make_spectra(count):
    """Two bands whose heights and positions follow two concentrations."""
    grid = torch.linspace(0, 1, CHANNELS)
    c = torch.randn(count, 2)
    height = torch.sigmoid(c)
    first = height[:, :1] * torch.exp(-((grid - 0.30 - 0.04 * c[:, 1:]) ** 2) / 0.006)
    second = height[:, 1:] * torch.exp(-((grid - 0.70 - 0.04 * c[:, :1]) ** 2) / 0.010)
    return first + second + 0.02 * torch.randn(count, CHANNELS), c


class SpectraVAE(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(CHANNELS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.to_mean = nn.Linear(width, LATENT)
        self.to_logvar = nn.Linear(width, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                     nn.Linear(width, CHANNELS))

    def encode(self, x):
        h = self.trunk(x)
        return self.to_mean(h), self.to_logvar(h).clamp(-8, 4)

    def forward(self, x):
        mean, logvar = self.encode(x)
        z = torch.normal(mean, torch.exp(0.5 * logvar))
        return self.decoder(z), mean, logvar


def elbo_terms(model, x, noise=0.1):
    """Negative log-likelihood under a fixed noise level (up to a constant) and the divergence from the prior."""
    output, mean, logvar = model(x)
    reconstruction = F.mse_loss(output, x, reduction="none").sum(1).mean() / (2 * noise ** 2)
    divergence = 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
    return reconstruction, divergence


def beta_at(step, warmup=80):
    return min(1.0, step / warmup)


@torch.no_grad()
def report(model, x):
    model.eval()
    mean, _ = model.encode(x)
    error = (model.decoder(mean) - x).pow(2).mean().sqrt().item()
    spread = mean.std(0).mean().item()
    model.train()
    return error, spread


@torch.no_grad()
def explained(model, x, c):
    """Share of the variance of the concentrations that a linear map of the code explains."""
    model.eval()
    code, _ = model.encode(x)
    design = torch.cat([code, torch.ones(len(code), 1)], dim=1)
    fit = design @ torch.linalg.lstsq(design, c).solution
    model.train()
    return 1 - ((c - fit).pow(2).sum() / (c - c.mean(0)).pow(2).sum()).item()


def train(model, x, steps, batch=128, lr=2e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        rows = torch.randint(len(x), (batch,))
        reconstruction, divergence = elbo_terms(model, x[rows])
        loss = reconstruction + beta_at(step) * divergence
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            nats = loss.item() + CHANNELS * (math.log(0.1) + 0.5 * math.log(2 * math.pi))
            print(f"step {step:4d}  -elbo {nats:.2f}  reconstruction {reconstruction.item():.2f}  "
                  f"divergence {divergence.item():.3f}")


def main():
    torch.manual_seed(3)
    x_train, _ = make_spectra(2000)
    x_test, c_test = make_spectra(500)
    model = SpectraVAE()
    train(model, x_train, steps=240)
    error, spread = report(model, x_test)
    print(f"test rmse {error:.4f}  spread of codes {spread:.3f}  explained {explained(model, x_test, c_test):.3f}")


if __name__ == "__main__":
    main()
