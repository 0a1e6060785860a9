"""Vector-quantised autoencoder on short waveforms: straight-through estimator, commitment loss and a codebook that
is maintained by moving averages instead of an optimizer."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def waves(n, length=32):
    t = torch.linspace(0, 1, length)
    freq = torch.randint(1, 5, (n, 1)).float()
    phase = torch.randint(0, 4, (n, 1)) * math.pi / 2
    return torch.sin(2 * math.pi * freq * t + phase) + 0.05 * torch.randn(n, length)


class Codebook(nn.Module):
    def __init__(self, codes=24, dim=4, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("vectors", torch.randn(codes, dim))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())

    @torch.no_grad()
    def seed(self, z):
        self.vectors.copy_(z[torch.randperm(len(z))[: len(self.vectors)]])
        self.sums.copy_(self.vectors)

    @torch.no_grad()
    def update(self, z, index):
        hot = F.one_hot(index, len(self.vectors)).float()
        self.counts.lerp_(hot.sum(0), 1 - self.decay)
        self.sums.lerp_(hot.t() @ z, 1 - self.decay)
        self.vectors.copy_(self.sums / self.counts.clamp(min=1e-3).unsqueeze(1))
        dead = self.counts < 0.05
        if dead.any():
            fresh = z[torch.randint(len(z), (int(dead.sum()),))]
            self.vectors[dead], self.sums[dead], self.counts[dead] = fresh, fresh, 1.0

    def forward(self, z):
        index = torch.cdist(z.detach(), self.vectors).argmin(1)
        quantised = self.vectors[index]
        commitment = F.mse_loss(z, quantised)
        if self.training:
            self.update(z.detach(), index)
        return z + (quantised - z).detach(), commitment, index


encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
decoder = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 32))
book = Codebook()
train, test = waves(2048), waves(512)
with torch.no_grad():
    book.seed(encoder(train))

optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for epoch in range(15):
    book.train()
    for index in torch.randperm(len(train)).split(64):
        x = train[index]
        z, commitment, _ = book(encoder(x))
        reconstruction = F.mse_loss(decoder(z), x)
        loss = reconstruction + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch}  reconstruction {reconstruction.item():.4f}  commitment {commitment.item():.4f}")

book.eval()
with torch.no_grad():
    z, _, used = book(encoder(test))
    error = F.mse_loss(decoder(z), test).item()
print(f"test error {error:.4f}, signal power {test.pow(2).mean().item():.4f}, codes in use {used.unique().numel()}")
