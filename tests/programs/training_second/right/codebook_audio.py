import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(111)


class Codebook(nn.Module):
    def __init__(self, codes, dim, decay=0.9):
        super().__init__()
        self.decay = decay
        vectors = torch.randn(codes, dim)
        self.register_buffer("vectors", vectors)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", vectors.clone())

    @torch.no_grad()
    def follow(self, flat, index):
        hits = F.one_hot(index, len(self.vectors)).type_as(flat)
        self.counts.lerp_(hits.sum(0), 1 - self.decay)
        self.sums.lerp_(hits.T @ flat, 1 - self.decay)
        self.vectors.copy_(self.sums / (self.counts + 1e-2)[:, None])

    def forward(self, z):
        index = torch.cdist(z.detach(), self.vectors).argmin(dim=1)
        quantised = self.vectors[index]
        commitment = F.mse_loss(z, quantised)
        if self.training:
            self.follow(z.detach(), index)
        return z + (quantised - z).detach(), commitment, index


class Codec(nn.Module):
    def __init__(self, frame=16, dim=4, codes=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(frame, 32), nn.SiLU(), nn.Linear(32, dim))
        self.book = Codebook(codes, dim)
        self.decode = nn.Sequential(nn.Linear(dim, 32), nn.SiLU(), nn.Linear(32, frame))

    def forward(self, x):
        code, commitment, index = self.book(self.encode(x))
        return self.decode(code), commitment, index


def frames(n):
    t = torch.arange(16.0)
    pitch = torch.tensor([0.2, 0.4, 0.8])[torch.randint(0, 3, (n, 1))]
    start = torch.randint(0, 4, (n, 1)) * 1.57
    return torch.sin(pitch * t + start) + 0.05 * torch.randn(n, 16)


codec = Codec()
optimizer = torch.optim.Adam(codec.parameters(), lr=5e-3)
for step in range(100):
    x = frames(48)
    restored, commitment, index = codec(x)
    loss = F.mse_loss(restored, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1} loss {loss.item():.4f} codes in use {len(index.unique())}")

codec.eval()
with torch.no_grad():
    x = frames(200)
    restored, _, _ = codec(x)
    print(f"reconstruction {F.mse_loss(restored, x):.4f} of {x.var():.4f}")
