"""A variational autoencoder with rsample and a KL term."""

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(inplace=True), nn.Linear(8, 6))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        posterior = Normal(mu, (0.5 * logvar).exp())
        return self.decoder(posterior.rsample()), posterior


torch.manual_seed(2)
model = VAE()
optimizer = torch.optim.AdamW(model.parameters())
prior = Normal(torch.zeros(2), torch.ones(2))
for x in torch.randn(3, 5, 6):
    output, posterior = model(x)
    loss = F.mse_loss(output, x) + 0.1 * kl_divergence(posterior, prior).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(model.decoder(prior.sample((2,))).shape)
