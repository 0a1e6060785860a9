"""VQ-VAE on short one-dimensional signals with a learned codebook."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"codes": 32, "dim": 8, "beta": 0.25, "lr": 3e-3, "epochs": 15, "batch": 64, "seed": 2}


def make_signals(n, length=32):
    t = torch.linspace(0, 1, length)
    freq = torch.randint(1, 5, (n, 1)).float()
    phase = torch.randint(0, 4, (n, 1)).float() * math.pi / 2
    amplitude = 0.5 + torch.rand(n, 1)
    clean = amplitude * torch.sin(2 * math.pi * freq * t + phase)
    return (clean + 0.05 * torch.randn(n, length)).unsqueeze(1)


class VectorQuantizer(nn.Module):
    def __init__(self, codes, dim, beta):
        super().__init__()
        self.beta = beta
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)

    def forward(self, z):
        b, d, l = z.shape
        flat = z.permute(0, 2, 1).reshape(-1, d)
        distance = torch.cdist(flat, self.codebook.weight)
        index = distance.argmin(dim=1)
        quantized = self.codebook(index)
        codebook_loss = F.mse_loss(quantized, flat.detach())
        commitment_loss = F.mse_loss(flat, quantized.detach())
        quantized = quantized + (flat - quantized).detach()
        quantized = quantized.view(b, l, d).permute(0, 2, 1)
        usage = index.unique().numel()
        return quantized, codebook_loss + self.beta * commitment_loss, usage


class VQVAE(nn.Module):
    def __init__(self, codes, dim, beta):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(16, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(16, dim, 1),
        )
        self.quantizer = VectorQuantizer(codes, dim, beta)
        self.decoder = nn.Sequential(
            nn.Conv1d(dim, 16, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(16, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        quantized, vq_loss, usage = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss, usage


def run_epoch(model, data, optimizer, batch):
    model.train()
    total = 0.0
    for idx in torch.randperm(data.size(0)).split(batch):
        x = data[idx]
        recon, vq_loss, usage = model(x)
        recon_loss = F.mse_loss(recon, x)
        loss = recon_loss + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += recon_loss.item() * x.size(0)
    return total / data.size(0), usage


torch.manual_seed(CONFIG["seed"])
data = make_signals(1024)
model = VQVAE(CONFIG["codes"], CONFIG["dim"], CONFIG["beta"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
for epoch in range(CONFIG["epochs"]):
    recon, usage = run_epoch(model, data, optimizer, CONFIG["batch"])
    if epoch % 5 == 0 or epoch == CONFIG["epochs"] - 1:
        print(f"epoch {epoch} reconstruction {recon:.4f} codes in use {usage}")
