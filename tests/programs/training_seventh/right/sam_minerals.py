"""Mineral classes from short reflectance spectra, few labelled samples: two-pass training around perturbed weights."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BANDS, CLASSES = 48, 5


class TwoPass(torch.optim.Optimizer):
    def __init__(self, params, inner, rho=0.05):
        super().__init__(list(params), dict(rho=rho))
        self.inner = inner

    @torch.no_grad()
    def climb(self):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for g in grads]).norm() + 1e-12
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                offset = p.grad * (group["rho"] / norm)
                p.add_(offset)
                self.state[p]["offset"] = offset

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if "offset" in self.state[p]:
                    p.sub_(self.state[p].pop("offset"))
        self.inner.step()

    def step(self, closure):
        with torch.enable_grad():
            self.inner.zero_grad()
            loss = closure()
            loss.backward()
        self.climb()
        with torch.enable_grad():
            self.inner.zero_grad()
            closure().backward()
        self.descend()
        return loss.detach()


class SpectrumNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, width, 7, padding=3), nn.GroupNorm(4, width), nn.SiLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.GroupNorm(4, width), nn.SiLU(),
        )
        self.head = nn.Linear(width * 6, CLASSES)

    def forward(self, x):
        h = self.conv(4 * (x[:, None] - 0.9))
        return self.head(F.adaptive_max_pool1d(h, 6).flatten(1))


def spectra(n, rng):
    y = rng.integers(0, CLASSES, n)
    wave = np.linspace(0, 1, BANDS)
    spot = 0.2 + 0.12 * y[:, None] + 0.02 * rng.standard_normal((n, 1))
    depth = rng.uniform(0.3, 0.7, (n, 1))
    slope = rng.standard_normal((n, 1)) * 0.3
    width = 0.02 + 0.012 * y[:, None]
    x = 1 + slope * wave - depth * np.exp(-0.5 * ((wave - spot) / width) ** 2)
    x = x + 0.08 * rng.standard_normal(x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def score(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main(epochs=40, batch=40):
    torch.manual_seed(23)
    rng = np.random.default_rng(5)
    x, y = spectra(200, rng)
    held = spectra(500, rng)
    net = SpectrumNet()
    inner = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    plan = torch.optim.lr_scheduler.MultiStepLR(inner, [25, 35], gamma=0.2)
    opt = TwoPass(net.parameters(), inner)
    for epoch in range(epochs):
        losses = []
        for rows in torch.randperm(len(x)).split(batch):
            def closure():
                return F.cross_entropy(net(x[rows]), y[rows])
            losses.append(opt.step(closure).item())
        plan.step()
        if epoch % 8 == 0:
            print(f"epoch {epoch:2d}  loss {np.mean(losses):.3f}  lr {inner.param_groups[0]['lr']:.4f}")
    print(f"train {score(net, x, y):.3f}  held-out {score(net, *held):.3f}")


if __name__ == "__main__":
    main()
