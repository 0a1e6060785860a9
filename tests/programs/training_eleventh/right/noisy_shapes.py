"""Shape classification with noisy labels, trained by sharpness-aware minimisation (two passes per step)."""
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, N_CLASSES, N_TRAIN, N_TEST = 16, 4, 320, 400
BATCH, EPOCHS, RHO, LABEL_NOISE = 32, 10, 0.03, 0.25


def draw_shapes(n, rng):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    labels = rng.integers(0, N_CLASSES, size=n)
    images = np.zeros((n, 1, SIZE, SIZE), dtype=np.float32)
    for i, label in enumerate(labels):
        cy, cx = rng.uniform(6, SIZE - 6, size=2)
        r = rng.uniform(3, 5)
        dy, dx = np.abs(yy - cy), np.abs(xx - cx)
        shape = (
            np.hypot(dy, dx) < r,
            np.maximum(dy, dx) < 0.85 * r,
            dy + dx < 1.2 * r,
            np.minimum(dy, dx) < 0.3 * r,
        )[label]
        inside = np.maximum(dy, dx) < 1.2 * r
        images[i, 0] = (shape & inside) + rng.normal(0, 0.25, size=(SIZE, SIZE))
    return torch.from_numpy(images), torch.from_numpy(labels)


class ShapeNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32 * width, 64), nn.ReLU(), nn.Linear(64, N_CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x))


class SAM:
    """Climbs to the worst point near the weights, takes the gradient there, steps from the original weights."""

    def __init__(self, params, base, rho):
        self.params = list(params)
        self.base, self.rho, self.saved = base, rho, []

    @torch.no_grad()
    def climb(self):
        norm = torch.norm(torch.stack([p.grad.norm() for p in self.params]))
        self.saved = [p.clone() for p in self.params]
        for p in self.params:
            p.add_(p.grad, alpha=(self.rho / (norm + 1e-12)).item())
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, saved in zip(self.params, self.saved):
            p.copy_(saved)
        self.base.step()
        self.base.zero_grad()


@contextmanager
def fixed_statistics(model):
    """Batch statistics normalise as usual, but the running averages stay as they are."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.momentum = 0.0
    try:
        yield
    finally:
        for m, momentum in zip(norms, momenta):
            m.momentum = momentum


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(13)
rng = np.random.default_rng(13)
train_x, clean_y = draw_shapes(N_TRAIN, rng)
test_x, test_y = draw_shapes(N_TEST, rng)
flip = torch.rand(N_TRAIN) < LABEL_NOISE
train_y = torch.where(flip, torch.randint(0, N_CLASSES, (N_TRAIN,)), clean_y)

net = ShapeNet()
sgd = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=EPOCHS)
sam = SAM(net.parameters(), sgd, RHO)
for epoch in range(EPOCHS):
    net.train()
    for idx in torch.randperm(N_TRAIN).split(BATCH):
        F.cross_entropy(net(train_x[idx]), train_y[idx]).backward()
        sam.climb()
        with fixed_statistics(net):
            (loss := F.cross_entropy(net(train_x[idx]), train_y[idx])).backward()
        sam.descend()
    scheduler.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss at the climbed point {loss.item():.4f} test acc {accuracy(net, test_x, test_y):.4f}")
print(f"clean train acc {accuracy(net, train_x, clean_y):.4f}, test acc {accuracy(net, test_x, test_y):.4f}")
