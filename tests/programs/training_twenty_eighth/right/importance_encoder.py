"""Importance-weighted autoencoder on binary digits-like glyphs, with the doubly reparameterised encoder gradient (Tucker et al., 2018)."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Bernoulli, Normal

PIXELS = 36


def glyphs(n):
    canvas = torch.zeros(n, 6, 6)
    rows, columns = torch.randint(0, 4, (n,)), torch.randint(0, 4, (n,))
    kind = torch.randint(0, 3, (n,))
    for i in range(n):
        patch = canvas[i, rows[i]:rows[i] + 3, columns[i]:columns[i] + 3]
        if kind[i] == 0:
            patch.fill_(1.0)
        elif kind[i] == 1:
            patch[1] = 1.0
            patch[:, 1] = 1.0
        else:
            patch.copy_(torch.eye(3))
    flip = torch.rand(n, 6, 6) < 0.02
    return torch.where(flip, 1 - canvas, canvas).flatten(1)


class Encoder(nn.Module):
    def __init__(self, latent, hidden=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PIXELS, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))

    def forward(self, x):
        mean, raw = self.body(x).chunk(2, dim=-1)
        return mean, F.softplus(raw) + 1e-3


class ImportanceAutoencoder(nn.Module):
    def __init__(self, latent=6, hidden=96):
        super().__init__()
        self.encoder = Encoder(latent, hidden)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, PIXELS))
        self.register_buffer("zero", torch.zeros(latent))
        self.register_buffer("one", torch.ones(latent))

    def log_weights(self, x, z, mean, std):
        log_p = Normal(self.zero, self.one).log_prob(z).sum(-1)
        log_x = Bernoulli(logits=self.decoder(z)).log_prob(x).sum(-1)
        log_q = Normal(mean, std).log_prob(z).sum(-1)
        return log_p + log_x - log_q

    def surrogate(self, x, samples):
        mean, std = self.encoder(x)
        z = Normal(mean, std).rsample((samples,))
        log_w = self.log_weights(x, z, mean.detach(), std.detach())
        weight = torch.softmax(log_w.detach(), dim=0)
        z.register_hook(lambda grad: weight.unsqueeze(-1) * grad)
        return -(weight * log_w).sum(dim=0).mean()

    @torch.no_grad()
    def bound(self, x, samples):
        mean, std = self.encoder(x)
        z = Normal(mean, std).sample((samples,))
        log_w = self.log_weights(x, z, mean, std)
        return (torch.logsumexp(log_w, dim=0) - math.log(samples)).mean().item()


def fit(model, data, test, steps=350, batch=64, samples=8):
    optimizer = torch.optim.Adamax(model.parameters(), lr=6e-3)
    for step in range(1, steps + 1):
        x = data[torch.randint(len(data), (batch,))]
        loss = model.surrogate(x, samples)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 70 == 0:
            print(f"{step:4d}  test bound with 32 samples {model.bound(test, 32):.3f}")
    return optimizer


if __name__ == "__main__":
    torch.manual_seed(9)
    train, test = glyphs(2000), glyphs(300)
    model = ImportanceAutoencoder()
    print(f"   0  test bound with 32 samples {model.bound(test, 32):.3f}")
    optimizer = fit(model, train, test)
