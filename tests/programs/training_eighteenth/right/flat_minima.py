"""Sharpness-aware training of a small convolutional net on noisy-label shapes, with our own optimizer wrapper.

Each step runs two passes: one for the ascent direction, one at the shifted weights for the real update.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def shapes(n, gen, flip=0.0):
    """16x16 images of a bar, a cross, a ring or a disc at a random place."""
    y = torch.randint(4, (n,), generator=gen)
    r = torch.arange(16.0)
    centre = 5 + 6 * torch.rand(n, 2, generator=gen)
    dy = (r - centre[:, :1])[:, :, None].expand(n, 16, 16)
    dx = (r - centre[:, 1:])[:, None, :].expand(n, 16, 16)
    rad = (dx ** 2 + dy ** 2).sqrt()
    near = (rad < 5).float()
    masks = torch.stack([
        (dy.abs() < 1.2).float() * near, ((dy.abs() < 1.2) | (dx.abs() < 1.2)).float() * near,
        ((rad - 3.5).abs() < 1).float(), (rad < 3.5).float(),
    ], 1)
    x = masks[torch.arange(n), y] + 0.35 * torch.randn(n, 16, 16, generator=gen)
    wrong = torch.rand(n, generator=gen) < flip
    return x.unsqueeze(1), torch.where(wrong, torch.randint(4, (n,), generator=gen), y)


class SAM:
    def __init__(self, params, base, rho=0.05, **kwargs):
        self.params = [p for p in params if p.requires_grad]
        self.base = base(self.params, **kwargs)
        self.rho = rho
        self.shift = {}

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        for p in self.params:
            self.shift[p] = p.detach().clone()
            p.add_(p.grad, alpha=(self.rho / (norm + 1e-12)).item())
            p.grad = None

    @torch.no_grad()
    def descend(self):
        for p in self.params:
            p.copy_(self.shift.pop(p))
        self.base.step()
        for p in self.params:
            p.grad = None


class frozen_statistics:
    """Inside, batch norm normalises by the batch as usual but leaves its running estimates alone."""

    def __init__(self, model):
        self.norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]

    def __enter__(self):
        self.saved = [m.momentum for m in self.norms]
        for m in self.norms:
            m.momentum = 0.0

    def __exit__(self, *exc):
        for m, momentum in zip(self.norms, self.saved):
            m.momentum = momentum


class Trainer:
    def __init__(self, model, optimizer, schedule, batch=64):
        self.model, self.optimizer, self.schedule, self.batch = model, optimizer, schedule, batch

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.ascend()
        with frozen_statistics(self.model):
            F.cross_entropy(self.model(x), y).backward()
        self.optimizer.descend()
        return loss.item()

    def fit(self, x, y, epochs):
        for epoch in range(epochs):
            self.model.train()
            losses = [self.step(x[idx], y[idx]) for idx in torch.randperm(len(x)).split(self.batch)]
            self.schedule.step()
            if epoch % 3 == 2:
                print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}")

    @torch.no_grad()
    def accuracy(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
gen = torch.Generator().manual_seed(1)
train, test = shapes(1024, gen, flip=0.2), shapes(500, gen)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(24 * 16, 4),
)
sam = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.03, momentum=0.9, weight_decay=5e-4, nesterov=True)
trainer = Trainer(model, sam, torch.optim.lr_scheduler.CosineAnnealingLR(sam.base, 9))
trainer.fit(*train, epochs=9)
print(f"clean test accuracy {trainer.accuracy(*test):.3f}")
