"""A network with binary weights: real-valued weights collect the updates, their signs do the computing."""
from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

CLASSES, SIDE = 10, 10
yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
waves = torch.stack([torch.cos(3.5 * (xx * torch.cos(a) + yy * torch.sin(a))) for a in torch.arange(CLASSES) * torch.pi / CLASSES])


def make_textures(n):
    label = torch.randint(0, CLASSES, (n,))
    return waves[label].flatten(1) + 1.2 * torch.randn(n, SIDE * SIDE), label


class SignNet(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.fc1, self.bn1 = nn.Linear(SIDE * SIDE, hidden, bias=False), nn.BatchNorm1d(hidden)
        self.fc2, self.bn2 = nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden)
        self.fc3, self.bn3 = nn.Linear(hidden, CLASSES, bias=False), nn.BatchNorm1d(CLASSES)

    def forward(self, x):
        x = F.hardtanh(self.bn1(self.fc1(x)))
        x = F.hardtanh(self.bn2(self.fc2(x)))
        return self.bn3(self.fc3(x))


class Binarizer:
    """Within `signs()` the layers hold +-s instead of their real weights; s is the mean size of the layer's weights."""

    def __init__(self, layers):
        self.weights = [layer.weight for layer in layers]

    @contextmanager
    def signs(self):
        real = [w.detach().clone() for w in self.weights]
        with torch.no_grad():
            for w, r in zip(self.weights, real):
                w.copy_(torch.where(r >= 0, 1.0, -1.0) * r.abs().mean())
        try:
            yield
        finally:
            with torch.no_grad():
                for w, r in zip(self.weights, real):
                    w.copy_(r)

    @torch.no_grad()
    def clip(self):
        for w in self.weights:
            w.clamp_(-0.3, 0.3)


model = SignNet()
binary = Binarizer([model.fc1, model.fc2, model.fc3])
names = {id(w) for w in binary.weights}
optimizer = torch.optim.Adam([
    {"params": binary.weights, "lr": 2e-3},
    {"params": [p for p in model.parameters() if id(p) not in names], "lr": 5e-3},
])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=250, gamma=0.3)


@torch.no_grad()
def accuracy(x, y):
    model.eval()
    with binary.signs():
        hit = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return hit


test_x, test_y = make_textures(1500)
for it in range(600):
    x, y = make_textures(64)
    optimizer.zero_grad()
    with binary.signs():
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    optimizer.step()                 # the gradients at the signs move the real weights
    binary.clip()
    schedule.step()
    if it % 150 == 0 or it == 599:
        print(f"iteration {it:3d}  loss {loss.item():.3f}  accuracy with binary weights {accuracy(test_x, test_y):.1%}")

with binary.signs():
    values = [w.unique().numel() for w in binary.weights]
print(f"values per layer while computing {values}, real weights kept: {[w.unique().numel() for w in binary.weights]}")
