"""Follow the pitch of gliding tones: a fixed filter bank, a recurrent layer and a linear read-out."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)

SAMPLES = 208
KERNEL = 16
STRIDE = 8
BANDS = 10
BATCH = 16
STEPS = 90
LEARNING_RATE = 4e-3
MAX_NORM = 1.0


class FilterBank(nn.Module):
    """Windowed sine and cosine filters and the logarithm of their energy."""

    def __init__(self, bands=BANDS, kernel=KERNEL, stride=STRIDE):
        super().__init__()
        time = torch.arange(kernel).float()
        window = torch.hann_window(kernel)
        speeds = torch.linspace(0.3, 2.4, bands).unsqueeze(1)
        kernels = torch.cat([torch.sin(speeds * time), torch.cos(speeds * time)]) * window
        self.weight = nn.Parameter(kernels.unsqueeze(1), requires_grad=False)
        self.stride = stride

    def forward(self, wave):
        filtered = F.conv1d(wave.unsqueeze(1), self.weight, stride=self.stride)
        real, imaginary = filtered.chunk(2, dim=1)
        return (real.pow(2) + imaginary.pow(2) + 1e-3).log()


class PitchFollower(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.bank = FilterBank()
        self.recurrent = nn.GRU(BANDS, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, wave):
        energy = self.bank(wave).transpose(1, 2)
        states, _ = self.recurrent(energy)
        return self.readout(states).squeeze(-1)


def make_tones(count):
    """Gliding tones with loudness that varies by the tone; the pitch in semitones for each frame."""
    start = 0.4 + 1.2 * torch.rand(count, 1)
    end = 0.4 + 1.2 * torch.rand(count, 1)
    ramp = torch.linspace(0, 1, SAMPLES)
    speed = start + (end - start) * ramp
    loudness = torch.exp(torch.randn(count, 1))
    wave = loudness * torch.sin(speed.cumsum(1) + 2 * math.pi * torch.rand(count, 1))
    wave = wave + 0.05 * torch.randn(count, SAMPLES)
    frames = torch.arange(0, SAMPLES - KERNEL + 1, STRIDE) + KERNEL // 2
    semitones = 12 * torch.log2(speed[:, frames] / 0.9)
    return wave, semitones


@torch.no_grad()
def mean_error(model, wave, semitones):
    model.eval()
    error = (model(wave) - semitones).abs().mean().item()
    model.train()
    return error


def train(model, steps=STEPS):
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trainable, lr=LEARNING_RATE, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=steps)
    running = None
    for step in range(steps):
        wave, semitones = make_tones(BATCH)
        loss = F.mse_loss(model(wave), semitones)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, MAX_NORM)
        optimizer.step()
        schedule.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if (step + 1) % 30 == 0:
            print(f"step {step + 1:4d}  loss {running:8.3f}")


if __name__ == "__main__":
    follower = PitchFollower()
    trained = sum(p.numel() for p in follower.parameters() if p.requires_grad)
    print(f"{trained} trained weights")
    wave, semitones = make_tones(64)
    print(f"error before: {mean_error(follower, wave, semitones):.2f} semitones")
    train(follower)
    print(f"error after:  {mean_error(follower, wave, semitones):.2f} semitones")
