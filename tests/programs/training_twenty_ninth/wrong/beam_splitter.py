"""Design of a diffractive beam splitter for a spatial light modulator with a small number of phase levels.

The modulator shows one of LEVELS phases in every pixel.  The far field is the Fourier transform of the illuminated
mask; a set of diffraction orders has to carry equal power.  A weak lens term and the scale of the detector
are part of the model.
"""
import math

import torch
from torch import nn

LEVELS = 32
PIXELS = 48


def gaussian_beam(pixels, waist):
    x = torch.linspace(-1.0, 1.0, pixels)
    radius = x.unsqueeze(0).pow(2) + x.unsqueeze(1).pow(2)
    beam = torch.exp(-radius / waist**2)
    return beam / beam.pow(2).sum().sqrt(), radius


def target_orders(pixels, spacing, count):
    target = torch.zeros(pixels, pixels)
    centre = pixels // 2
    reach = (count - 1) // 2
    for i in range(-reach, reach + 1):
        for j in range(-reach, reach + 1):
            target[centre + i * spacing, centre + j * spacing] = 1.0
    return target / target.sum()


class Modulator(nn.Module):
    """Phase mask as the device shows it: a fraction of a turn on a grid of levels."""

    def __init__(self, pixels, levels):
        super().__init__()
        self.levels = levels
        self.turns = nn.Parameter(torch.rand(pixels, pixels))

    def forward(self):
        shown = torch.round(self.turns * self.levels) / self.levels
        return 2.0 * math.pi * shown


class Splitter(nn.Module):
    def __init__(self, pixels, levels, waist=0.8):
        super().__init__()
        beam, radius = gaussian_beam(pixels, waist)
        self.register_buffer("beam", beam)
        self.register_buffer("radius", radius)
        self.modulator = Modulator(pixels, levels)
        self.lens = nn.Parameter(torch.tensor(0.5))
        self.log_scale = nn.Parameter(torch.tensor(0.0))

    def forward(self):
        phase = self.modulator() + self.lens * self.radius
        field = torch.polar(self.beam, phase)
        far = torch.fft.fftshift(torch.fft.fft2(field, norm="ortho"))
        return self.log_scale.exp() * far.abs().pow(2)


def design_loss(power, target):
    wanted = target > 0
    spots = (power[wanted] / target[wanted] - 1.0).pow(2).mean()
    stray = power[~wanted].sum()
    return spots + 0.2 * stray


def report(power, target):
    spots = power[target > 0]
    efficiency = (spots.sum() / power.sum()).item()
    uniformity = (1.0 - (spots.max() - spots.min()) / (spots.max() + spots.min())).item()
    return efficiency, uniformity


def optimise(model, target, steps):
    optimizer = torch.optim.Adam(
        [
            {"params": model.modulator.parameters(), "lr": 0.02},
            {"params": [model.lens, model.log_scale], "lr": 0.01},
        ]
    )
    losses = []
    for step in range(steps):
        power = model()
        loss = design_loss(power, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 0:
            efficiency, uniformity = report(power.detach(), target)
            print(f"step {step:3d}  loss {loss.item():.4f}  efficiency {efficiency:.3f}  uniformity {uniformity:.3f}")
    return losses


def main():
    torch.manual_seed(3)
    target = target_orders(PIXELS, spacing=5, count=5)
    model = Splitter(PIXELS, LEVELS)
    losses = optimise(model, target, steps=110)
    with torch.no_grad():
        efficiency, uniformity = report(model(), target)
    print(f"final loss {losses[-1]:.4f}, efficiency {efficiency:.3f}, uniformity {uniformity:.3f}")
    print(f"lens {model.lens.item():.3f}, scale {model.log_scale.exp().item():.3f}")
    return model, losses, efficiency


if __name__ == "__main__":
    model, losses, efficiency = main()
