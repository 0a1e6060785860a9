"""Beta-VAE where the two parts of the objective are logged separately."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BETA = 0.5


class BetaVAE(nn.Module):
    def __init__(self, dim=16, latent=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, 32), nn.ReLU())
        self.mu = nn.Linear(32, latent)
        self.logvar = nn.Linear(32, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.dec(z), mu, logvar


def rec_loss(recon, x):
    return F.mse_loss(recon, x, reduction="none").sum(dim=1).mean()


def kl_loss(mu, logvar):
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()


class History:
    def __init__(self):
        self.rows = []

    def add(self, **values):
        self.rows.append({k: v.item() for k, v in values.items()})

    def mean(self, key, last):
        rows = self.rows[-last:]
        return sum(r[key] for r in rows) / len(rows)


def train_step(model, optimizer, x, history):
    optimizer.zero_grad()
    recon, mu, logvar = model(x)
    rec = rec_loss(recon, x)
    rec.backward(retain_graph=True)
    kl = kl_loss(mu, logvar)
    total = rec + BETA * kl
    total.backward()
    optimizer.step()
    history.add(rec=rec, kl=kl, total=total)


def main():
    torch.manual_seed(139)
    factors = torch.randn(512, 3)
    data = torch.tanh(factors @ torch.randn(3, 16)) + 0.1 * torch.randn(512, 16)
    model, history = BetaVAE(), History()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(15):
        for idx in torch.randperm(512).split(64):
            train_step(model, optimizer, data[idx], history)
        if epoch % 5 == 4:
            print(f"epoch {epoch}: rec {history.mean('rec', 8):.3f} kl {history.mean('kl', 8):.3f}")
    return model, data


if __name__ == "__main__":
    main()
