import torch
import torch.nn as nn
import torch.nn.functional as F


class GaussianHead(nn.Module):
    def __init__(self, hidden, latent):
        super().__init__()
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)

    def forward(self, h):
        mu, logvar = self.mu(h), self.logvar(h)
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1.0 - logvar).sum(dim=1)
        return mu, logvar, kl


class BetaVAE(nn.Module):
    def __init__(self, n_in=20, hidden=32, latent=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(inplace=True))
        self.head = GaussianHead(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, n_in))

    def reparameterize(self, mu, logvar):
        std = logvar.mul(0.5).exp_()
        if not self.training:
            return mu
        eps = torch.randn_like(std)
        return mu + eps.mul_(std)

    def forward(self, x):
        mu, logvar, kl = self.head(self.enc(x))
        z = self.reparameterize(mu, logvar)
        return self.dec(z), kl


class BetaSchedule:
    def __init__(self, final=4.0, warmup=10):
        self.final, self.warmup, self.t = final, warmup, 0

    def __call__(self):
        self.t += 1
        return self.final * min(1.0, self.t / self.warmup)


def make_data(n=256):
    factors = torch.randn(n, 3)
    mix = torch.randn(3, 20)
    return torch.tanh(factors @ mix) + 0.05 * torch.randn(n, 20)


def train(model, data, epochs=3, batch=64):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    beta = BetaSchedule()
    model.train()
    for epoch in range(epochs):
        order = torch.randperm(data.shape[0])
        total = 0.0
        for idx in order.split(batch):
            x = data[idx]
            recon, kl = model(x)
            rec = F.mse_loss(recon, x, reduction="none").sum(1)
            loss = (rec + beta() * kl).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch} elbo loss {total / len(data):.4f}")
    model.eval()
    with torch.no_grad():
        print("eval recon", F.mse_loss(model(data)[0], data).item())


if __name__ == "__main__":
    torch.manual_seed(6)
    train(BetaVAE(), make_data())
