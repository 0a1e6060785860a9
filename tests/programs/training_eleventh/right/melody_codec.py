"""A small neural audio codec: frames of tones go through a vector-quantized bottleneck whose codebook is kept by averages."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

FRAME, DIM, CODES = 64, 8, 48


def make_frames(n):
    t = torch.arange(FRAME) / FRAME
    freq = torch.randint(1, 9, (n, 1)).float()
    phase = 0.5 * math.pi * torch.randint(0, 4, (n, 1))
    wave = (1 + 0.1 * torch.randn(n, 1)) * torch.sin(2 * math.pi * freq * t + phase)
    return wave + 0.05 * torch.randn(n, FRAME)


class Codebook(nn.Module):
    """The codes follow the running means of the latents assigned to them, so no optimizer holds them."""

    def __init__(self, codes, dim, decay=0.95, eps=1e-3):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("codes", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.codes.clone())
        self.register_buffer("started", torch.tensor(False))

    @torch.no_grad()
    def start(self, z):
        pick = torch.randint(0, len(z), (len(self.codes),))
        self.codes.copy_(z[pick] + 0.01 * torch.randn_like(self.codes))
        self.total.copy_(self.codes)
        self.started.fill_(True)

    @torch.no_grad()
    def follow(self, z, index):
        hot = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.count.lerp_(hot.sum(0), 1 - self.decay)
        self.total.lerp_(hot.t() @ z, 1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.total / smooth[:, None])
        dead = (self.count < 0.05).nonzero(as_tuple=True)[0]      # idle codes move to latents of this batch
        if len(dead):
            fresh = z[torch.randint(0, len(z), (len(dead),))]
            self.codes[dead], self.total[dead], self.count[dead] = fresh, fresh, 1.0

    def forward(self, z):
        if self.training and not self.started:
            self.start(z)
        index = torch.cdist(z.detach(), self.codes).argmin(1)
        q = self.codes[index]
        commit = F.mse_loss(z, q)
        if self.training:
            self.follow(z, index)
        return z + (q - z).detach(), index, commit


class Codec(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(FRAME, hidden), nn.GELU(), nn.Linear(hidden, DIM))
        self.codebook = Codebook(CODES, DIM)
        self.decoder = nn.Sequential(nn.Linear(DIM, hidden), nn.GELU(), nn.Linear(hidden, FRAME))

    def forward(self, x):
        q, index, commit = self.codebook(self.encoder(x))
        return self.decoder(q), index, commit


model = Codec()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
for it in range(500):
    x = make_frames(96)
    y, index, commit = model(x)
    error = F.mse_loss(y, x)
    loss = error + 0.25 * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 100 == 0 or it == 499:
        print(f"iteration {it:3d}  error {error.item():.4f}  commitment {commit.item():.4f}  codes in batch {index.unique().numel()}")

model.eval()
with torch.no_grad():
    x = make_frames(2000)
    y, index, _ = model(x)
noise = F.mse_loss(y, x)
print(f"signal-to-noise {10 * torch.log10(x.square().mean() / noise).item():.1f} dB at {math.log2(CODES):.1f} bits a frame,"
      f" {index.unique().numel()} codes in use")
