"""Vector-quantised autoencoder of short motion traces, with a codebook kept by moving averages.

The codes are not trained by the optimizer: they follow the mean of the encodings assigned to them, and codes that are
hardly used are set to encodings of the present batch.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

LENGTH = 32
CODES, DIM, SLOTS = 24, 6, 4
DECAY, EPSILON = 0.95, 1e-5
COMMITMENT = 0.25
STEPS = 240
BATCH = 48


def traces(count):
    t = torch.linspace(0.0, 1.0, LENGTH)
    freq = torch.randint(1, 4, (count, 1)).float()
    phase = 0.5 * math.pi * torch.randint(0, 4, (count, 1)).float()
    size = 0.6 + 0.6 * torch.rand(count, 1)
    return size * torch.sin(2.0 * math.pi * freq * t + phase) + 0.05 * torch.randn(count, LENGTH)


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        codes = torch.randn(CODES, DIM)
        self.register_buffer("codes", codes)
        self.register_buffer("usage", torch.ones(CODES))
        self.register_buffer("total", codes.clone())

    @torch.no_grad()
    def nearest(self, z):
        return torch.cdist(z, self.codes).argmin(dim=1)

    @torch.no_grad()
    def follow(self, z, index):
        chosen = F.one_hot(index, CODES).to(z.dtype)
        self.usage.mul_(DECAY).add_(chosen.sum(dim=0), alpha=1.0 - DECAY)
        self.total.mul_(DECAY).add_(chosen.t() @ z, alpha=1.0 - DECAY)

        idle = self.usage < 0.2
        if idle.any():
            picks = torch.randint(0, len(z), (int(idle.sum()),))
            self.total[idle] = z[picks]
            self.usage[idle] = 1.0

        count = self.usage.sum()
        smoothed = (self.usage + EPSILON) / (count + CODES * EPSILON) * count
        self.codes.copy_(self.total / smoothed.unsqueeze(1))

    def forward(self, z):
        index = self.nearest(z)
        quantised = F.embedding(index, self.codes)
        if self.training:
            self.follow(z, index)
        commitment = F.mse_loss(z, quantised)
        return z + (quantised - z).detach(), commitment, index


class TraceAutoencoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, width), nn.ReLU(), nn.Linear(width, SLOTS * DIM))
        self.codebook = Codebook()
        self.decoder = nn.Sequential(nn.Linear(SLOTS * DIM, width), nn.ReLU(), nn.Linear(width, LENGTH))

    def forward(self, x):
        z = self.encoder(x).view(-1, DIM)
        quantised, commitment, index = self.codebook(z)
        return self.decoder(quantised.view(len(x), -1)), commitment, index


torch.manual_seed(17)
model = TraceAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
test = traces(400)

for step in range(STEPS):
    x = traces(BATCH)
    restored, commitment, index = model(x)
    reconstruction = F.mse_loss(restored, x)
    loss = reconstruction + COMMITMENT * commitment
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if (step + 1) % 60 == 0:
        used = index.unique().numel()
        print(
            f"step {step + 1:4d}  reconstruction {reconstruction.item():.4f}  "
            f"commitment {commitment.item():.4f}  codes used {used}"
        )

model.eval()
with torch.no_grad():
    restored, _, index = model(test)
    error = F.mse_loss(restored, test).item()
print(f"new traces: error {error:.4f} of variance {test.var().item():.4f}, {index.unique().numel()} codes in use")
