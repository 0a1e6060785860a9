"""Variational autoencoder on 8 x 8 pictures of a single bright bar (position, angle and brightness vary)."""
import math

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def draw_bars(n, size=8):
    axis = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    angle = math.pi * torch.rand(n, 1, 1)
    offset = torch.empty(n, 1, 1).uniform_(-0.6, 0.6)
    level = torch.empty(n, 1, 1).uniform_(0.5, 1.0)
    distance = xx * angle.cos() + yy * angle.sin() - offset
    return (level * torch.exp(-(distance**2) / 0.08)).flatten(1)


class VAE(nn.Module):
    def __init__(self, pixels=64, hidden=64, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))
        self.latent = latent

    def posterior(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        return Normal(mean, (0.5 * log_var).exp())

    def forward(self, x):
        q = self.posterior(x)
        z = q.sample()
        return self.decoder(z), q

    def loss(self, x, beta=1.0, noise=0.1):
        recon, q = self(x)
        rec = F.mse_loss(recon, x, reduction="none").sum(1).mean() / (2 * noise**2)
        prior = Normal(torch.zeros_like(q.loc), torch.ones_like(q.scale))
        kl = kl_divergence(q, prior).sum(1).mean()
        return rec + beta * kl, rec, kl


class Trainer:
    def __init__(self, model, data, epochs=12, batch=64, warmup=4):
        self.model, self.data = model, data
        self.epochs, self.batch, self.warmup = epochs, batch, warmup
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.log = []

    def fit(self):
        for epoch in range(self.epochs):
            beta = min(1.0, (epoch + 1) / self.warmup)
            for index in torch.randperm(len(self.data)).split(self.batch):
                loss, rec, kl = self.model.loss(self.data[index], beta)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.log.append((rec.item(), kl.item()))
            if epoch % 3 == 0:
                print(f"epoch {epoch:2d}  reconstruction {rec.item():.2f}  kl {kl.item():.2f}")


def main():
    train, test = draw_bars(2048), draw_bars(512)
    model = VAE()
    Trainer(model, train).fit()
    model.eval()
    with torch.no_grad():
        q = model.posterior(test)
        error = F.mse_loss(model.decoder(q.loc), test).item()
    baseline = F.mse_loss(train.mean(0).expand_as(test), test).item()
    print(f"test pixel error {error:.4f} (mean picture: {baseline:.4f})")


if __name__ == "__main__":
    main()
