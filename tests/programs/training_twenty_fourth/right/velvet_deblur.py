"""Deep equilibrium denoiser for 1-D signals: the layer's output is the fixed point z = f(z, x)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    length: int = 32
    width: int = 48
    tol: float = 1e-5
    max_iter: int = 60
    lr: float = 3e-3
    steps: int = 150
    batch: int = 64
    seed: int = 13


def blurred_pairs(n, length, gen):
    """Piecewise constant signals, blurred with a 5-tap kernel and with noise."""
    jumps = (torch.rand(n, length, generator=gen) < 0.12) * torch.randn(n, length, generator=gen)
    clean = jumps.cumsum(1)
    clean = clean - clean.mean(1, keepdim=True)
    kernel = torch.tensor([[[0.1, 0.2, 0.4, 0.2, 0.1]]])
    blurred = F.conv1d(F.pad(clean[:, None], (2, 2), mode="replicate"), kernel)[:, 0]
    return blurred + 0.05 * torch.randn(n, length, generator=gen), clean


def iterate(f, start, tol, max_iter):
    z = start
    for _ in range(max_iter):
        new = f(z)
        if (new - z).norm() <= tol * (1e-6 + new.norm()):
            return new
        z = new
    return z


class Cell(nn.Module):
    """f(z, x); the recurrent matrix is rescaled so that its spectral norm is at most 0.7."""

    def __init__(self, d_x, d_z):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(d_z, d_z) / d_z**0.5)
        self.inject = nn.Linear(d_x, d_z)

    def recurrent(self):
        return self.raw * (0.7 / torch.linalg.matrix_norm(self.raw, 2).clamp(min=0.7))

    def forward(self, z, x):
        return torch.tanh(z @ self.recurrent().T + self.inject(x))


class Equilibrium(nn.Module):
    def __init__(self, cell, tol, max_iter):
        super().__init__()
        self.cell, self.tol, self.max_iter = cell, tol, max_iter

    def forward(self, x):
        start = x.new_zeros(len(x), self.cell.raw.shape[0])
        with torch.no_grad():
            z = iterate(lambda z: self.cell(z, x), start, self.tol, self.max_iter)
        if not torch.is_grad_enabled():
            return z
        out = self.cell(z, x)
        z0 = z.clone().requires_grad_()
        f0 = self.cell(z0, x.detach())

        def adjoint(grad):
            step = lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
            return iterate(step, grad, self.tol, self.max_iter)

        out.register_hook(adjoint)
        return out


class Deblurrer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.core = Equilibrium(Cell(cfg.length, cfg.width), cfg.tol, cfg.max_iter)
        self.head = nn.Linear(cfg.width, cfg.length)

    def forward(self, x):
        return x + self.head(self.core(x))


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    x, y = blurred_pairs(3000, cfg.length, gen)
    x_test, y_test = blurred_pairs(500, cfg.length, gen)
    model = Deblurrer(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for step in range(1, cfg.steps + 1):
        idx = torch.randint(len(x), (cfg.batch,), generator=gen)
        loss = F.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            with torch.no_grad():
                test = F.mse_loss(model(x_test), y_test).item()
            print(f"step {step:3d}  train {loss.item():.4f}  test {test:.4f}  (input {F.mse_loss(x_test, y_test).item():.4f})")


if __name__ == "__main__":
    main()
