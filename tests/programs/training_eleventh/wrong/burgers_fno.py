"""Fourier neural operator for 1D viscous Burgers: coarse-grid warm-up, then fine-tuning on a finer grid."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 21
MODES, WIDTH = 8, 16
COARSE, FINE = 32, 64
COARSE_EPOCHS, FINE_EPOCHS = 12, 12
BATCH = 16

torch.manual_seed(SEED)


def solve(n_samples, n, steps=200, dt=1e-3, nu=0.05):
    """Initial conditions of a few sines, integrated spectrally with semi-implicit Euler; returns (u0, uT)."""
    x = torch.arange(n) / n
    k = torch.arange(1, 4)
    coef = torch.randn(n_samples, 3, 1) / k[None, :, None]
    phase = 2 * math.pi * torch.rand(n_samples, 3, 1)
    u0 = (coef * torch.sin(2 * math.pi * k[None, :, None] * x + phase)).sum(1)
    freq = 2 * math.pi * torch.arange(n // 2 + 1)
    damping = 1 / (1 + dt * nu * freq**2)
    dealias = (torch.arange(n // 2 + 1) < n // 3).float()
    u = u0.clone()
    for _ in range(steps):
        flux = torch.fft.rfft(0.5 * u * u) * dealias
        u_hat = (torch.fft.rfft(u) - dt * 1j * freq * flux) * damping
        u = torch.fft.irfft(u_hat, n=n)
    return u0.unsqueeze(1), u.unsqueeze(1)


class SpectralConv(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def forward(self, x):
        x_hat = torch.fft.rfft(x)
        out = torch.zeros_like(x_hat)
        out[..., : self.modes] = torch.einsum("bim,iom->bom", x_hat[..., : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])


class FNO(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Conv1d(1, WIDTH, 1)
        self.spectral = nn.ModuleList(SpectralConv(WIDTH, MODES) for _ in range(3))
        self.local = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 1) for _ in range(3))
        self.project = nn.Sequential(nn.Conv1d(WIDTH, 32, 1), nn.GELU(), nn.Conv1d(32, 1, 1))

    def forward(self, u):
        h = self.lift(u)
        for spectral, local in zip(self.spectral, self.local):
            h = F.gelu(spectral(h) + local(h))
        return self.project(h)


def relative_l2(pred, target):
    return ((pred - target).flatten(1).norm(dim=1) / target.flatten(1).norm(dim=1)).mean()


def run_epoch(model, optimizer, u0, uT):
    total = 0.0
    order = torch.randperm(len(u0)).split(BATCH)
    for idx in order:
        loss = relative_l2(model(u0[idx]), uT[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(order)


coarse = solve(192, COARSE)
fine = solve(96, FINE)
test = solve(64, FINE)

model = FNO()
optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=COARSE_EPOCHS + FINE_EPOCHS)

for epoch in range(COARSE_EPOCHS):
    train_loss = run_epoch(model, optimizer, *coarse)
    scheduler.step()
print(f"coarse grid: train {train_loss:.4f} lr {scheduler.get_last_lr()[0]:.5f}")

# The fine grid starts with fresh moments and without decay on the lifting and projection layers.
inner = list(model.spectral.parameters()) + list(model.local.parameters())
outer = list(model.lift.parameters()) + list(model.project.parameters())
optimizer = torch.optim.AdamW([{"params": inner}, {"params": outer, "weight_decay": 0.0}], lr=8e-3, weight_decay=1e-4)
for epoch in range(FINE_EPOCHS):
    train_loss = run_epoch(model, optimizer, *fine)
    scheduler.step()
print(f"fine grid: train {train_loss:.4f} lr {scheduler.get_last_lr()[0]:.5f}")

model.eval()
with torch.no_grad():
    test_error = relative_l2(model(test[0]), test[1]).item()
print(f"test relative error on the fine grid {test_error:.4f}")
