"""Sorts shells by their outline with sharpness-aware minimisation (Foret et al. 2021).

Each step takes two passes: one to climb to the worst point nearby, one there for the update.
The batch statistics are recorded in the first pass only.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

POINTS, KINDS = 24, 5
EPOCHS, BATCH = 6, 50


class SharpnessAware(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.trained()]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["kept"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def update(self):
        for p in self.trained():
            p.data.copy_(self.state[p]["kept"])
        self.base_optimizer.step()
        self.zero_grad()

    def trained(self):
        return [p for group in self.param_groups for p in group["params"] if p.grad is not None]


class recording_off:
    """Normalisation layers use the batch statistics but leave the running ones alone."""

    def __init__(self, model):
        self.layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]

    def __enter__(self):
        self.momenta = [layer.momentum for layer in self.layers]
        for layer in self.layers:
            layer.momentum = 0.0

    def __exit__(self, *exc):
        for layer, momentum in zip(self.layers, self.momenta):
            layer.momentum = momentum


def make_shells(n, generator):
    kind = torch.randint(0, KINDS, (n,), generator=generator)
    angle = torch.arange(POINTS) * 2 * math.pi / POINTS
    turn = 2 * math.pi * torch.rand(n, 1, generator=generator)
    ribs = (kind + 2).float().unsqueeze(1)
    outline = 1.0 + 0.3 * torch.cos(ribs * (angle + turn))
    return outline + 0.12 * torch.randn(n, POINTS, generator=generator), kind


class ShellNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 7, padding=3, padding_mode="circular", bias=False)
        self.norm = nn.BatchNorm1d(16)
        self.mix = nn.Conv1d(16, 24, 7, padding=3, padding_mode="circular", bias=False)
        self.mix_norm = nn.BatchNorm1d(24)
        self.head = nn.Linear(24, KINDS)

    def forward(self, outline):
        x = F.relu(self.norm(self.conv(outline.unsqueeze(1))))
        x = F.relu(self.mix_norm(self.mix(x)))
        return self.head(x.amax(dim=2))


@torch.no_grad()
def accuracy(model, outlines, kinds):
    model.eval()
    return (model(outlines).argmax(dim=1) == kinds).float().mean().item()


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(170)
    outlines, kinds = make_shells(600, generator)
    test = make_shells(300, generator)
    model = ShellNet()
    optimizer = SharpnessAware(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        for pick in torch.randperm(len(outlines), generator=generator).split(BATCH):
            loss = F.cross_entropy(model(outlines[pick]), kinds[pick])
            loss.backward()
            optimizer.climb()
            with recording_off(model):
                F.cross_entropy(model(outlines[pick]), kinds[pick]).backward()
            optimizer.update()
        scheduler.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}  test accuracy {accuracy(model, *test):.3f}")
    return model, optimizer


if __name__ == "__main__":
    model, optimizer = main()
