"""Discrete codes for short motion segments: an autoencoder whose bottleneck picks one entry of a learned table."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 21
torch.manual_seed(SEED)
LENGTH = 32
CODES = 24
DIM = 8
BETA = 0.25
STEPS = 500
BATCH = 64


def make_segments(n, gen):
    """Swings, ramps, steps and bumps of three amplitudes, two channels each."""
    t = torch.linspace(0, 1, LENGTH)
    shapes = torch.stack([
        torch.sin(2 * math.pi * t), torch.cos(2 * math.pi * t), 2 * t - 1,
        torch.where(t > 0.5, 1.0, -1.0), torch.exp(-((t - 0.5) / 0.12) ** 2), torch.sin(4 * math.pi * t),
    ])
    first = torch.randint(0, len(shapes), (n,), generator=gen)
    second = (first + torch.randint(0, 2, (n,), generator=gen)) % len(shapes)
    amplitude = torch.tensor([0.6, 1.2])[torch.randint(0, 2, (n,), generator=gen)].view(-1, 1, 1)
    clean = amplitude * torch.stack([shapes[first], shapes[second]], dim=1)
    return clean + 0.05 * torch.randn(n, 2, LENGTH, generator=gen)


class CodeTable(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.table = nn.Embedding(size, dim)
        nn.init.uniform_(self.table.weight, -0.5, 0.5)

    def forward(self, z):
        # the nearest entry is a hard choice without a gradient of its own
        with torch.no_grad():
            index = torch.cdist(z, self.table.weight).argmin(dim=1)
            picked = self.table(index)
        table_loss = F.mse_loss(picked, z.detach())
        commit_loss = F.mse_loss(z, picked.detach())
        picked = z + (picked - z).detach()
        return picked, index, table_loss + BETA * commit_loss


class SegmentCoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(2 * LENGTH, width), nn.SiLU(), nn.Linear(width, DIM),
        )
        self.codes = CodeTable(CODES, DIM)
        self.decoder = nn.Sequential(
            nn.Linear(DIM, width), nn.SiLU(), nn.Linear(width, 2 * LENGTH), nn.Unflatten(1, (2, LENGTH)),
        )

    def forward(self, x):
        picked, index, code_loss = self.codes(self.encoder(x))
        return self.decoder(picked), index, code_loss


def perplexity(index):
    share = torch.bincount(index, minlength=CODES).float() / len(index)
    return torch.exp(-(share * (share + 1e-10).log()).sum()).item()


def main():
    gen = torch.Generator().manual_seed(SEED)
    train = make_segments(3000, gen)
    held_out = make_segments(600, gen)
    model = SegmentCoder()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=4e-3, total_steps=STEPS)
    for step in range(STEPS):
        x = train[torch.randint(0, len(train), (BATCH,), generator=gen)]
        recon, index, code_loss = model(x)
        recon_loss = F.mse_loss(recon, x)
        loss = recon_loss + code_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: reconstruction {recon_loss.item():.4f} codes {code_loss.item():.4f} "
                  f"perplexity {perplexity(index):.2f}")
    model.eval()
    with torch.no_grad():
        recon, index, _ = model(held_out)
        error = F.mse_loss(recon, held_out).item()
    return model, error, perplexity(index)


if __name__ == "__main__":
    model, error, used = main()
    print(f"held-out reconstruction {error:.4f}, perplexity {used:.2f}")
