"""expect: saved-tensor-modified-inplace

A variational autoencoder whose standard deviation is nudged in place by a helper.
"""

import torch
from torch import nn
from torch.nn import functional as F


def stabilise(tensor, floor=1e-4):
    """Keep a scale away from zero."""
    return tensor.add_(floor)  # role: modified_here


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 8)
        self.to_mu = nn.Linear(8, 2)
        self.to_logvar = nn.Linear(8, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))

    def reparameterise(self, mu, logvar):
        std = torch.exp(0.5 * logvar)  # role: saved_here
        noise = torch.randn_like(std)
        return mu + noise * stabilise(std)

    def forward(self, x):
        h = torch.tanh(self.encoder(x))
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        return self.decoder(self.reparameterise(mu, logvar)), mu, logvar


def elbo(reconstruction, x, mu, logvar):
    divergence = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
    return F.mse_loss(reconstruction, x, reduction="sum") + divergence


torch.manual_seed(1)
model = VAE()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(5, 6)
reconstruction, mu, logvar = model(x)
loss = elbo(reconstruction, x, mu, logvar)
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
