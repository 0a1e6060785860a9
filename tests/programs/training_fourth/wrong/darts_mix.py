"""Differentiable architecture search on a small regression task: each cell mixes three candidate operations; the
mixing weights are fitted to validation batches, the operations' own weights to training batches."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def make_data(n, noise):
    x = torch.randn(n, 12)
    y = torch.tanh(x[:, :1] + x[:, 1:2]) + 0.5 * x[:, 2:3]
    return x, y + noise * torch.randn(n, 1)


class LinearOp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.map = nn.Linear(dim, 1)

    def forward(self, x):
        return self.map(x)


class SmoothOp(nn.Module):
    def __init__(self, dim, hidden=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)


class WideOp(nn.Module):
    """Many high-frequency features."""

    def __init__(self, dim, features=256):
        super().__init__()
        self.register_buffer("freq", 1.5 * torch.randn(dim, features))
        self.register_buffer("phase", 6.28 * torch.rand(features))
        self.out = nn.Linear(features, 1)

    def forward(self, x):
        return self.out(torch.cos(x @ self.freq + self.phase))


class MixedCell(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ops = nn.ModuleList([LinearOp(dim), SmoothOp(dim), WideOp(dim)])
        self.alpha = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        weights = self.alpha.softmax(0)
        return sum(w * op(x) for w, op in zip(weights, self.ops))


class Supernet(nn.Module):
    def __init__(self, dim=12, cells=2):
        super().__init__()
        self.cells = nn.ModuleList([MixedCell(dim) for _ in range(cells)])

    def arch_parameters(self):
        return [cell.alpha for cell in self.cells]

    def forward(self, x):
        return sum(cell(x) for cell in self.cells)


def search(net, train, val, steps=450, batch=40):
    w_opt = torch.optim.Adam(net.parameters(), lr=0.01)
    a_opt = torch.optim.Adam(net.arch_parameters(), lr=0.003)
    for step in range(steps):
        index = torch.randperm(len(val[0]))[:batch]
        val_loss = F.mse_loss(net(val[0][index]), val[1][index])
        a_opt.zero_grad()
        val_loss.backward()
        a_opt.step()

        index = torch.randperm(len(train[0]))[:batch]
        train_loss = F.mse_loss(net(train[0][index]), train[1][index])
        w_opt.zero_grad()
        train_loss.backward()
        w_opt.step()
        if step % 150 == 0:
            print(f"step {step:4d}  train {train_loss.item():.3f}  validation {val_loss.item():.3f}")


def main():
    train, val, test = make_data(300, 1.0), make_data(300, 1.0), make_data(2000, 0.0)
    net = Supernet()
    search(net, train, val)
    with torch.no_grad():
        error = F.mse_loss(net(test[0]), test[1]).item()
        mix = torch.stack([a.softmax(0) for a in net.arch_parameters()])
    print("mixing weights (linear, smooth, wide):", [[round(v, 2) for v in row] for row in mix.tolist()])
    print(f"test error {error:.3f}")


if __name__ == "__main__":
    main()
