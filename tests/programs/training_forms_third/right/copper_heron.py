import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(59)


def speech(n, size=24):
    t = torch.linspace(0, 1, size)
    pitch = torch.randint(1, 5, (n, 1)).float()
    return torch.sin(6.28 * pitch * t) * (0.5 + torch.rand(n, 1)) + 0.05 * torch.randn(n, size)


class Bottleneck(nn.Module):
    def __init__(self, words, dim):
        super().__init__()
        self.words = nn.Parameter(torch.randn(words, dim) * 0.3)

    def forward(self, z):
        near = torch.cdist(z, self.words).argmin(dim=-1)
        picked = F.one_hot(near, len(self.words)).to(z) @ self.words
        pull = F.mse_loss(picked, z.detach()) + 0.25 * F.mse_loss(z, picked.detach())
        return z + (picked - z).detach(), pull, near


class Codec(nn.Module):
    def __init__(self, size=24, parts=2, dim=4):
        super().__init__()
        self.down = nn.Sequential(nn.Linear(size, 32), nn.Mish(), nn.Linear(32, parts * dim), nn.Unflatten(1, (parts, dim)))
        self.middle = Bottleneck(16, dim)
        self.up = nn.Sequential(nn.Flatten(), nn.Linear(parts * dim, 32), nn.Mish(), nn.Linear(32, size))

    def forward(self, frame):
        code, pull, near = self.middle(self.down(frame))
        return self.up(code), pull, near


def perplexity(near, words):
    share = torch.bincount(near.flatten(), minlength=words) / near.numel()
    return torch.exp(-(share * share.clamp_min(1e-9).log()).sum())


codec = Codec()
optimizer = torch.optim.Adam(codec.parameters(), lr=4e-3)
for step in range(240):
    frame = speech(96)
    rebuilt, pull, near = codec(frame)
    error = F.mse_loss(rebuilt, frame)
    optimizer.zero_grad()
    (error + pull).backward()
    optimizer.step()
    if step % 60 == 59:
        print(f"step {step + 1}  error {error.item():.4f}  words in use {perplexity(near, 16).item():.2f}")
