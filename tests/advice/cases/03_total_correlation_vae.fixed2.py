"""Disentangling VAE with a density-ratio discriminator on the code."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, n_in=20, n_z=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU())
        self.to_mu = nn.Linear(32, n_z)
        self.to_logvar = nn.Linear(32, n_z)

    def forward(self, x):
        h = self.body(x)
        mu = self.to_mu(h)
        logvar = self.to_logvar(h)
        return mu, logvar


class Trainer:
    def __init__(self):
        self.encoder = Encoder()
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20))
        self.ratio = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
        vae_params = list(self.encoder.parameters()) + list(self.decoder.parameters())
        self.opt_vae = torch.optim.Adam(vae_params, lr=1e-3)
        self.opt_ratio = torch.optim.Adam(self.ratio.parameters(), lr=1e-3)

    def encode(self, x):
        mu, logvar = self.encoder(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return z, kl

    @staticmethod
    def permute_dims(z):
        return torch.stack([z[torch.randperm(z.size(0)), j] for j in range(z.size(1))], dim=1)

    def step(self, x1, x2, gamma=6.0):
        z, kl = self.encode(x1)
        d_z = self.ratio(z)
        tc = (d_z[:, 0] - d_z[:, 1]).mean()
        vae_loss = F.mse_loss(self.decoder(z), x1) + kl + gamma * tc
        self.opt_vae.zero_grad()
        vae_loss.backward(retain_graph=True)
        self.opt_vae.step()
        z, _ = self.encode(x1)
        d_z = self.ratio(z)

        with torch.no_grad():
            z2, _ = self.encode(x2)
            shuffled = self.permute_dims(z2)
        zeros = torch.zeros(x1.size(0), dtype=torch.long)
        ratio_loss = 0.5 * (F.cross_entropy(d_z, zeros) + F.cross_entropy(self.ratio(shuffled), zeros + 1))
        self.opt_ratio.zero_grad()
        ratio_loss.backward()
        self.opt_ratio.step()
        return vae_loss.item(), ratio_loss.item()


if __name__ == "__main__":
    torch.manual_seed(2)
    trainer = Trainer()
    for _ in range(3):
        print(trainer.step(torch.randn(24, 20), torch.randn(24, 20)))
