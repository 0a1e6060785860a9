"""Ptychography by gradient descent: a complex object and the probe that scans it, from diffraction magnitudes.

The probe is held at its first guess for some epochs and refined afterwards.  The object passes light, so that its
modulus is at most one.
"""
import torch
import torch.nn.functional as F
from torch import nn

SIZE, PROBE, STRIDE = 32, 16, 4


def scan_corners():
    steps = torch.arange(0, SIZE - PROBE + 1, STRIDE)
    return torch.cartesian_prod(steps, steps)


def round_probe(width, curvature):
    x = torch.linspace(-1.0, 1.0, PROBE)
    radius = x.pow(2).unsqueeze(0) + x.pow(2).unsqueeze(1)
    probe = torch.polar(torch.exp(-radius / width**2), curvature * radius)
    return probe / probe.abs().pow(2).sum().sqrt() * PROBE


def sample():
    coarse = torch.rand(2, 1, 7, 7)
    modulus, phase = F.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic", align_corners=True)[:, 0].clamp(0.0, 1.0)
    return torch.polar(0.4 + 0.6 * modulus, 1.5 * phase)


class Scan(nn.Module):
    def __init__(self, specimen, probe):
        super().__init__()
        self.specimen = nn.Parameter(specimen.clone())
        self.probe = nn.Parameter(probe.clone())

    def forward(self, corners):
        views = torch.stack([self.specimen[r : r + PROBE, c : c + PROBE] for r, c in corners.tolist()])
        waves = torch.fft.fft2(views * self.probe, norm="ortho")
        return (waves.abs().pow(2) + 1e-8).sqrt()


def magnitude_loss(model, corners, magnitudes):
    return (model(corners) - magnitudes).pow(2).mean()


def limit_modulus(specimen):
    specimen.data.div_(specimen.data.abs().clamp_min(1.0))


def main():
    torch.manual_seed(20)
    truth, true_probe = sample(), round_probe(0.7, 2.0)
    corners = scan_corners()
    with torch.no_grad():
        magnitudes = Scan(truth, true_probe)(corners)

    model = Scan(torch.ones(SIZE, SIZE, dtype=torch.cfloat), round_probe(0.6, 1.5))
    optimizer = torch.optim.Adam(
        [{"params": [model.specimen], "lr": 0.05}, {"params": [model.probe], "lr": 0.02}]
    )
    model.probe.requires_grad_(False)
    losses = []
    epochs, probe_from = 40, 8
    for epoch in range(epochs):
        if epoch == probe_from:
            model.probe.requires_grad_(True)
        if epoch == epochs - 10:
            for group in optimizer.param_groups:
                group["lr"] *= 0.2
        total = 0.0
        for rows in torch.randperm(len(corners)).split(9):
            optimizer.zero_grad(set_to_none=True)
            loss = magnitude_loss(model, corners[rows], magnitudes[rows])
            loss.backward()
            optimizer.step()
            limit_modulus(model.specimen)
            total += loss.detach() * len(rows)
        losses.append(total.item() / len(corners))
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d}  loss {losses[-1]:.5f}")
    with torch.no_grad():
        overlap = (truth.conj() * model.specimen).sum().abs() / (truth.norm() * model.specimen.norm())
        likeness = (true_probe.conj() * model.probe).sum().abs() / (true_probe.norm() * model.probe.norm())
    print(f"final loss {losses[-1]:.6f}, agreement of the object {overlap:.4f}, of the probe {likeness:.4f}")
    return model, losses, overlap.item(), likeness.item()


if __name__ == "__main__":
    model, losses, overlap, likeness = main()
