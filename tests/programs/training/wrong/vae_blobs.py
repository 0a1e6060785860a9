"""Variational autoencoder on noisy 2-factor data."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

torch.manual_seed(13)


class VAE(nn.Module):
    def __init__(self, data_dim=12, latent=2):
        super().__init__()
        self.trunk = nn.Linear(data_dim, 32)
        self.to_mu = nn.Linear(32, latent)
        self.to_logvar = nn.Linear(32, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.Tanh(), nn.Linear(32, data_dim))

    def encode(self, x):
        h = torch.tanh(self.trunk(x))
        return Normal(self.to_mu(h), torch.exp(0.5 * self.to_logvar(h)))

    def forward(self, x):
        posterior = self.encode(x)
        z = posterior.sample()
        return self.decoder(z), posterior


def make_data(n):
    factors = torch.randn(n, 2)
    mixing = torch.randn(2, 12)
    return torch.tanh(factors @ mixing) + 0.05 * torch.randn(n, 12)


data = make_data(512)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=5e-3)
prior = Normal(torch.zeros(2), torch.ones(2))

for epoch in range(20):
    rec_sum = kl_sum = 0.0
    for batch in data[torch.randperm(len(data))].split(64):
        recon, posterior = vae(batch)
        rec = F.mse_loss(recon, batch, reduction="sum") / len(batch)
        kl = kl_divergence(posterior, prior).sum(dim=1).mean()
        loss = rec + 0.05 * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        rec_sum += rec.item()
        kl_sum += kl.item()
    if epoch % 5 == 0 or epoch == 19:
        print(f"epoch {epoch}: rec {rec_sum / 8:.3f} kl {kl_sum / 8:.4f}")
