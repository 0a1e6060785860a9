"""Leaf shape recognition with sharpness-aware training (SAM), ported from the authors' TensorFlow loop.

Each step goes uphill to the worst nearby weights first, takes the gradient there and applies it to the original weights.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
SIZE, CLASSES, RHO, BATCH, EPOCHS = 16, 3, 0.05, 64, 8


def make_leaves(n):
    """Filled outlines with 3, 4 or 5 lobes, turned a little and scaled at random."""
    y = torch.randint(0, CLASSES, (n,))
    axis = torch.linspace(-1, 1, SIZE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    shift = 0.1 * torch.randn(n, 2)
    dy, dx = yy - shift[:, :1, None], xx - shift[:, 1:, None]
    angle = torch.atan2(dy, dx) + 0.35 * torch.randn(n)[:, None, None]
    edge = 0.55 + 0.3 * torch.cos((y + 3)[:, None, None] * angle)
    leaf = torch.sigmoid(12 * (edge * (0.8 + 0.4 * torch.rand(n))[:, None, None] - (dy ** 2 + dx ** 2).sqrt()))
    return (leaf + 0.25 * torch.randn(n, SIZE, SIZE))[:, None], y


def set_bn_tracking(model, on):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.1 if on else 0.0


class SAM:
    def __init__(self, base, rho):
        self.base, self.rho = base, rho
        self.kept = {}

    def parameters(self):
        return [p for group in self.base.param_groups for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def climb(self):
        params = self.parameters()
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        for p in params:
            self.kept[p] = p.clone()
            p.add_(p.grad, alpha=(self.rho / (norm + 1e-12)).item())
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, value in self.kept.items():
            p.copy_(value)
        self.kept.clear()
        self.base.step()
        self.base.zero_grad()


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(24 * 16, CLASSES),
)
sam = SAM(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4), RHO)
x_train, y_train = make_leaves(1200)
x_test, y_test = make_leaves(1000)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(BATCH):
        x, y = x_train[idx], y_train[idx]
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        sam.climb()

        set_bn_tracking(model, False)
        F.cross_entropy(model(x), y).backward()
        set_bn_tracking(model, True)
        sam.descend()
        total += loss.item() * len(idx)
    if epoch % 2 == 1:
        model.eval()
        with torch.no_grad():
            hit = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch + 1}  loss {total / len(x_train):.4f}  test accuracy {hit:.3f}")

print(f"rho {RHO}, final test accuracy {hit:.3f}")
