"""Reef survey classifier trained with a two-pass sharpness-aware update."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 29
CLASSES = 4


def survey(n, rng, centers, noise):
    y = rng.integers(0, CLASSES, n)
    x = centers[y, rng.integers(0, centers.shape[1], n)] + noise * rng.standard_normal((n, centers.shape[2]))
    return torch.tensor(x.astype(np.float32)), torch.tensor(y)


class ReefNet(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.fc1 = nn.Linear(n_in, width)
        self.bn = nn.BatchNorm1d(width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x):
        h = F.relu(self.bn(self.fc1(x)))
        return self.out(F.relu(self.fc2(h)))


class Ascent:
    """Moves the weights uphill by rho along the gradient and puts them back afterwards."""

    def __init__(self, params, rho=0.08):
        self.params = list(params)
        self.rho = rho
        self.saved = []

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        self.saved = [p.data.clone() for p in self.params]
        for p in self.params:
            p.add_(p.grad, alpha=self.rho / (norm.item() + 1e-12))

    @torch.no_grad()
    def restore(self):
        for p, old in zip(self.params, self.saved):
            p.data.copy_(old)
        self.saved = []


def set_momentum(model, value):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = value


def train(model, x, y, epochs=15):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    ascent = Ascent(model.parameters())
    model.train()
    for epoch in range(epochs):
        gap = 0.0
        for idx in torch.randperm(len(x)).split(40):
            set_momentum(model, 0.1)
            base = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            base.backward()
            ascent.climb()

            set_momentum(model, 0.0)  # statistics only from the weights that are kept
            high = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            high.backward()
            ascent.restore()
            opt.step()
            gap += (high - base).item() * len(idx)
        if epoch % 5 == 4:
            print(f"epoch {epoch:2d}  loss {base.item():.4f}  sharpness {gap / len(x):.4f}")
    set_momentum(model, 0.1)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    centers = rng.standard_normal((CLASSES, 3, 12))
    x, y = survey(800, rng, centers, 0.8)
    x_test, y_test = survey(1500, rng, centers, 0.8)
    model = ReefNet(12)
    before = accuracy(model, x_test, y_test)
    train(model, x, y)
    after = accuracy(model, x_test, y_test)
    print(f"test accuracy {before:.3f} -> {after:.3f}")


if __name__ == "__main__":
    main()
