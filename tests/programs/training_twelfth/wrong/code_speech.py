"""VQ-VAE (van den Oord et al., 2017) on short synthetic waveforms."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

LENGTH = 64
N_CODES, DIM = 32, 8
BETA = 0.25
EPOCHS = 8


def waveforms(n):
    """A tone with one of a few harmonic stacks, an onset and an exponential decay."""
    t = torch.arange(LENGTH).float() / LENGTH
    f0 = torch.tensor([3.0, 4.0, 6.0, 8.0])[torch.randint(0, 4, (n,))]
    stack = torch.rand(n, 3) * torch.tensor([1.0, 0.6, 0.3])
    onset = torch.rand(n, 1) * 0.4
    env = torch.exp(-4 * (t - onset).clamp(min=0)) * (t > onset)
    wave = sum(stack[:, k:k + 1] * torch.sin(2 * math.pi * (k + 1) * f0[:, None] * t) for k in range(3))
    return (wave * env).unsqueeze(1)


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes, dim, beta):
        super().__init__()
        self.embedding = nn.Embedding(n_codes, dim)
        nn.init.uniform_(self.embedding.weight, -1.0 / n_codes, 1.0 / n_codes)
        self.n_codes, self.beta = n_codes, beta

    def forward(self, z):
        z = z.transpose(1, 2).contiguous()
        flat = z.view(-1, z.size(-1))
        dist = (flat.pow(2).sum(1, keepdim=True)
                - 2 * flat @ self.embedding.weight.t()
                + self.embedding.weight.pow(2).sum(1))
        indices = dist.argmin(dim=1)
        quantized = self.embedding(indices).view_as(z)

        # straight-through estimator
        quantized = z + (quantized - z).detach()

        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment_loss = F.mse_loss(z, quantized.detach())
        loss = codebook_loss + self.beta * commitment_loss

        usage = torch.bincount(indices, minlength=self.n_codes).float()
        prob = usage / usage.sum()
        perplexity = torch.exp(-(prob * (prob + 1e-10).log()).sum())
        return quantized.transpose(1, 2), loss, perplexity


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(32, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(32, DIM, 1))
        self.quantizer = VectorQuantizer(N_CODES, DIM, BETA)
        self.decoder = nn.Sequential(
            nn.Conv1d(DIM, 32, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(32, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(32, 1, 4, stride=2, padding=1))

    def forward(self, x):
        q, vq_loss, perplexity = self.quantizer(self.encoder(x))
        return self.decoder(q), vq_loss, perplexity


train_set, test_set = waveforms(2048), waveforms(256)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(EPOCHS):
    total = 0.0
    for idx in torch.randperm(len(train_set)).split(64):
        x = train_set[idx]
        recon, vq_loss, perplexity = model(x)
        recon_loss = F.mse_loss(recon, x) / train_set.var()
        loss = recon_loss + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += recon_loss.item() * len(idx)
    print(f"epoch {epoch + 1}  recon {total / len(train_set):.4f}  vq {vq_loss.item():.4f}  "
          f"perplexity {perplexity.item():.1f}")

model.eval()
with torch.no_grad():
    recon, _, perplexity = model(test_set)
    test_error = (F.mse_loss(recon, test_set) / test_set.var()).item()
print(f"test recon {test_error:.4f}  perplexity {perplexity.item():.1f}")
