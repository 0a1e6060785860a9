"""Denoising of short periodic waveforms with a small residual network, in bfloat16 autocast on the CPU."""
import math

import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 48
BATCH = 32


def make_waves(count, generator):
    """Sums of two sinusoids and a noisy copy of each."""
    t = torch.linspace(0, 1, LENGTH)
    freq = torch.randint(1, 6, (count, 2, 1), generator=generator).float()
    phase = torch.rand(count, 2, 1, generator=generator) * 2 * math.pi
    amp = torch.rand(count, 2, 1, generator=generator) + 0.3
    clean = (amp * torch.sin(2 * math.pi * freq * t + phase)).sum(1)
    noisy = clean + 0.4 * torch.randn(count, LENGTH, generator=generator)
    return noisy, clean


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Denoiser(nn.Module):
    def __init__(self, width=64, blocks=2):
        super().__init__()
        self.inlet = nn.Linear(LENGTH, width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(blocks))
        self.outlet = nn.Linear(width, LENGTH)

    def forward(self, noisy):
        h = self.inlet(noisy)
        for block in self.blocks:
            h = block(h)
        return self.outlet(h)


def batches(noisy, clean, generator):
    order = torch.randperm(len(noisy), generator=generator)
    for start in range(0, len(order), BATCH):
        idx = order[start:start + BATCH]
        yield noisy[idx], clean[idx]


def train_epoch(model, optimizer, data, generator):
    """One pass over the training waves; returns the mean loss."""
    model.train()
    total, steps = 0.0, 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for noisy, clean in batches(*data, generator):
            optimizer.zero_grad(set_to_none=True)
            restored = model(noisy)
            loss = F.mse_loss(restored.float(), clean)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            steps += 1
    return total / steps


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    noisy, clean = data
    with torch.autocast("cpu", dtype=torch.bfloat16):
        restored = model(noisy)
    return F.mse_loss(restored.float(), clean).item()


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    train = make_waves(1280, generator)
    held_out = make_waves(256, generator)

    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8, eta_min=2e-4)

    history = []
    print(f"noise floor of the input {F.mse_loss(*held_out).item():.4f}")
    for epoch in range(8):
        train_loss = train_epoch(model, optimizer, train, generator)
        scheduler.step()
        test_loss = evaluate(model, held_out)
        history.append((train_loss, test_loss))
        print(f"epoch {epoch}  train {train_loss:.4f}  held out {test_loss:.4f}")
    return model, history


if __name__ == "__main__":
    model, history = main()
