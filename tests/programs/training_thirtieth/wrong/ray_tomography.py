"""Attenuation tomography from random subsets of rays.

The attenuation map and the gains of the detectors are fitted by stochastic gradient steps on few noisy rays at a
time; the map that is reported is a running average of the iterates.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)

SIZE = 8
DETECTORS = 16
STEPS = 450
BATCH = 24


def ray_matrix(angles=36, samples=40):
    """Path lengths of straight rays through the pixels of the unit square."""
    rows, owner = [], []
    for k in range(angles):
        phi = math.pi * k / angles
        along = torch.tensor([math.cos(phi), math.sin(phi)])
        across = torch.tensor([-math.sin(phi), math.cos(phi)])
        for d in range(DETECTORS):
            offset = (d + 0.5) / DETECTORS - 0.5
            s = torch.linspace(-0.7, 0.7, samples).unsqueeze(1)
            point = 0.5 + offset * across + s * along
            inside = ((point >= 0) & (point < 1)).all(dim=1)
            cell = (point[inside] * SIZE).long()
            row = torch.bincount(cell[:, 0] * SIZE + cell[:, 1], minlength=SIZE * SIZE).float()
            rows.append(row * (1.4 / samples))
            owner.append(d)
    return torch.stack(rows), torch.tensor(owner)


def phantom():
    t = (torch.arange(SIZE) + 0.5) / SIZE
    x, y = torch.meshgrid(t, t, indexing="ij")
    body = ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.17).float()
    core = ((x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.02).float()
    return 0.2 + 1.0 * body + 1.2 * core


class Scanner(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(SIZE * SIZE))
        self.log_gain = nn.Parameter(torch.zeros(DETECTORS))

    def image(self):
        return F.softplus(self.raw)

    def forward(self, rays, owner):
        gain = self.log_gain - self.log_gain.mean()
        return rays @ self.image() + gain[owner]


class IterateAverage:
    """Exponential average of the parameters of a model."""

    def __init__(self, model, decay):
        self.decay = decay
        self.values = {name: p.detach() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.values[name].lerp_(p, 1 - self.decay)

    def write_to(self, model):
        model.load_state_dict(self.values)
        return model


def train(model, rays, owner, signal):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    average = IterateAverage(model, decay=0.985)
    for step in range(STEPS):
        rows = torch.randint(0, len(rays), (BATCH,))
        noisy = signal[rows] + 0.2 * torch.randn(BATCH)
        loss = (model(rays[rows], owner[rows]) - noisy).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  misfit {loss.item():.4f}")
    return average


def relative_error(image, truth):
    return ((image - truth).norm() / truth.norm()).item()


if __name__ == "__main__":
    rays, owner = ray_matrix()
    truth = phantom().flatten()
    true_gain = 0.1 * torch.randn(DETECTORS)
    signal = rays @ truth + (true_gain - true_gain.mean())[owner]
    scanner = Scanner()
    average = train(scanner, rays, owner, signal)
    result = average.write_to(Scanner())
    with torch.no_grad():
        error = relative_error(result.image(), truth)
        center = result.image().reshape(SIZE, SIZE)[SIZE // 2, SIZE // 2].item()
    print(f"attenuation in the centre {center:.3f}")
    print(f"error of the averaged map {error:.4f}")
