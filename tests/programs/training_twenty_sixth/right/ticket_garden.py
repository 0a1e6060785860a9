"""Iterative magnitude pruning with weight rewinding: train, prune the smallest weights, rewind, train again."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_data(n, seed, d=30, n_classes=5):
    teacher = torch.Generator().manual_seed(77)
    centers = torch.randn(n_classes, 3, 8, generator=teacher)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n,), generator=g)
    mode = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, d, generator=g)
    x[:, :8] = 1.3 * centers[y, mode] + 0.7 * x[:, :8]   # only the first eight inputs carry signal
    return x, y


class PrunedMLP(nn.Module):
    def __init__(self, d=30, hidden=96, n_classes=5):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, n_classes)])
        for i, layer in enumerate(self.layers):
            self.register_buffer(f"mask{i}", torch.ones_like(layer.weight))

    def mask(self, i):
        return getattr(self, f"mask{i}")

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.linear(x, layer.weight * self.mask(i), layer.bias)
            if i + 1 < len(self.layers):
                x = F.relu(x)
        return x

    @torch.no_grad()
    def prune(self, fraction):
        for i, layer in enumerate(self.layers[:-1]):
            alive = layer.weight.abs()[self.mask(i) > 0]
            threshold = alive.kthvalue(max(1, int(fraction * len(alive)))).values
            self.mask(i).mul_((layer.weight.abs() > threshold).float())

    @torch.no_grad()
    def rewind(self, snapshot):
        for name, p in self.named_parameters():
            p.copy_(snapshot[name])

    def density(self):
        masks = [self.mask(i) for i in range(len(self.layers) - 1)]
        return (sum(m.sum() for m in masks) / sum(m.numel() for m in masks)).item()


def fit(model, x, y, epochs, seed, lr=0.1, batch=64):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    gen = torch.Generator().manual_seed(seed)
    model.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    return (model.eval()(x).argmax(dim=1) == y).float().mean().item()


def main(rounds=5, fraction=0.4, warm_epochs=1, epochs=8):
    torch.manual_seed(0)
    x, y = make_data(500, seed=1)
    x_test, y_test = make_data(1500, seed=2)
    model = PrunedMLP()
    fit(model, x, y, warm_epochs, seed=10)
    early = copy.deepcopy(model.state_dict())
    history = []
    for r in range(rounds):
        loss = fit(model, x, y, epochs, seed=20)
        history.append(accuracy(model, x_test, y_test))
        print(f"round {r}  density {model.density():.3f}  train loss {loss:.4f}  test accuracy {history[-1]:.3f}")
        if r + 1 < rounds:
            model.prune(fraction)
            model.rewind(early)
    return model, early, history


if __name__ == "__main__":
    main()
