"""VQ-VAE whose codebook is a set of buffers updated by exponential moving averages."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class EMAQuantizer(nn.Module):
    def __init__(self, codes=24, dim=6, decay=0.95, beta=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.beta, self.eps = decay, beta, eps
        weight = torch.randn(codes, dim)
        self.register_buffer("weight", weight)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", weight.clone())

    @torch.no_grad()
    def update(self, flat, index):
        onehot = F.one_hot(index, self.counts.numel()).to(flat.dtype)
        self.counts.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
        n = self.counts.sum()
        smoothed = (self.counts + self.eps) / (n + self.counts.numel() * self.eps) * n
        self.weight.copy_(self.sums / smoothed.unsqueeze(1))
        dead = (self.counts < 0.05).nonzero().squeeze(1)
        if dead.numel():
            picks = flat[torch.randint(0, flat.size(0), (dead.numel(),))]
            self.weight[dead] = picks
            self.sums[dead] = picks
            self.counts[dead] = 1.0

    def forward(self, z):
        index = torch.cdist(z.detach(), self.weight).argmin(1)
        quantized = self.weight[index]
        commitment = F.mse_loss(z, quantized)
        out = z + (quantized - z).detach()
        if self.training:
            self.update(z.detach(), index)
        return out, self.beta * commitment, index


class VQAutoencoder(nn.Module):
    def __init__(self, length=24, hidden=48, dim=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(length, hidden), nn.ReLU(), nn.Linear(hidden, 3 * dim))
        self.decoder = nn.Sequential(nn.Linear(3 * dim, hidden), nn.ReLU(), nn.Linear(hidden, length))
        self.quantizer = EMAQuantizer(dim=dim)
        self.dim = dim

    def forward(self, x):
        z = self.encoder(x).view(-1, self.dim)
        q, commit, index = self.quantizer(z)
        return self.decoder(q.view(x.size(0), -1)), commit, index


def waves(n, length=24):
    t = torch.linspace(0, 2 * math.pi, length)
    k = torch.randint(1, 4, (n, 1)).float()
    shift = torch.randint(0, 3, (n, 1)).float()
    return torch.sin(k * t + shift) + 0.05 * torch.randn(n, length)


torch.manual_seed(2)
data = waves(1024)
model = VQAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    model.train()
    total = 0.0
    for idx in torch.randperm(data.size(0)).split(64):
        recon, commit, index = model(data[idx])
        recon_loss = F.mse_loss(recon, data[idx])
        loss = recon_loss + commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += recon_loss.item() * idx.numel()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            _, _, index = model(data)
        print(f"epoch {epoch} reconstruction {total / data.size(0):.4f} codes {index.unique().numel()}")
