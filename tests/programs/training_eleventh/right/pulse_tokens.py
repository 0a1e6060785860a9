"""Turns pulse curves into a few discrete tokens (vector quantisation with a running-average codebook).

Ported from the Sonnet / TensorFlow module of the same idea: the codebook is moved by averages, not by the optimizer.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
STEPS, TOKENS, CODES, WIDTH = 64, 8, 32, 8


def make_pulses(n):
    """Periodic pulse waves with a second bump of varying height; rate, start and heights vary."""
    t = torch.arange(STEPS) / STEPS
    beat = (t[None] * (2 + 2 * torch.rand(n, 1)) + torch.rand(n, 1)) % 1.0
    first = torch.exp(-((beat - 0.25) / 0.09) ** 2)
    second = (0.2 + 0.5 * torch.rand(n, 1)) * torch.exp(-((beat - 0.6) / 0.12) ** 2)
    return (first + second + 0.03 * torch.randn(n, STEPS) - 0.35)[:, None] * 2


class Codebook(nn.Module):
    def __init__(self, codes, width, decay=0.97, commitment=0.25):
        super().__init__()
        self.decay, self.commitment = decay, commitment
        self.register_buffer("vectors", torch.randn(codes, width))
        self.register_buffer("size", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def follow(self, flat, index):
        hits = F.one_hot(index, len(self.vectors)).float()
        self.size.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hits.t() @ flat, alpha=1 - self.decay)
        total = self.size.sum()
        smooth = (self.size + 1e-3) / (total + 1e-3 * len(self.size)) * total
        self.vectors.copy_(self.sums / smooth[:, None])
        unused = self.size < 0.05
        if unused.any():
            fresh = flat[torch.randint(0, len(flat), (int(unused.sum()),))]
            self.vectors[unused], self.sums[unused], self.size[unused] = fresh, fresh, 1.0

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, z.shape[1])
        if self.training and not self.ready:
            self.vectors.copy_(flat.detach()[torch.randperm(len(flat))[:len(self.vectors)]])
            self.sums.copy_(self.vectors)
            self.ready.fill_(True)
        index = torch.cdist(flat.detach(), self.vectors).argmin(1)
        q = self.vectors[index].view(z.shape[0], z.shape[2], -1).transpose(1, 2)
        loss = self.commitment * F.mse_loss(z, q)
        if self.training:
            self.follow(flat.detach(), index)
        return z + (q - z).detach(), loss, index


encoder = nn.Sequential(nn.Conv1d(1, 24, 8, stride=4, padding=2), nn.ReLU(),
                        nn.Conv1d(24, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv1d(32, WIDTH, 1))
decoder = nn.Sequential(nn.ConvTranspose1d(WIDTH, 32, 4, stride=2, padding=1), nn.ReLU(),
                        nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(), nn.ConvTranspose1d(32, 1, 8, stride=4, padding=2))
codebook = Codebook(CODES, WIDTH)
model = nn.ModuleDict({"encoder": encoder, "codebook": codebook, "decoder": decoder})
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
pulses, held = make_pulses(2000), make_pulses(500)

for epoch in range(12):
    model.train()
    for x in pulses[torch.randperm(len(pulses))].split(64):
        q, commit, _ = codebook(encoder(x))
        loss = F.mse_loss(decoder(q), x) + commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            q, commit, index = codebook(encoder(held))
            error = F.mse_loss(decoder(q), held).item()
        share = torch.bincount(index, minlength=CODES).float() / len(index)
        perplexity = torch.special.entr(share).sum().exp().item()
        print(f"epoch {epoch + 1:2d}  held-out error {error:.4f}  commitment {commit.item():.4f}  codes in use {perplexity:.1f}")

bits = TOKENS * math.log2(CODES)
print(f"{bits:.0f} bits per curve, error {error:.4f} of variance {held.var().item():.4f}")
