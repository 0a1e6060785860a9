"""Transfer learning in two stages: fit the head on a frozen trunk, then fine-tune the whole network."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

SEED = 17
WARM_EPOCHS = 6
EPOCHS = 40
BATCH = 16
PEAK = 0.01


def leaves(n, rng, mixing, noise):
    """Shape descriptors of leaves; the species depends on a curved function of a few latent factors."""
    z = rng.standard_normal((n, 6))
    x = np.tanh(z @ mixing) + 0.1 * rng.standard_normal((n, mixing.shape[1]))
    area = np.sin(1.5 * z[:, 0]) + z[:, 1] * z[:, 2] + noise * rng.standard_normal(n)
    edge = z[:, 3] ** 2 - 1 + 0.7 * z[:, 4]
    return (torch.tensor(x.astype(np.float32)), torch.tensor(area.astype(np.float32)),
            torch.tensor(edge.astype(np.float32)))


class LeafNet(nn.Module):
    def __init__(self, n_in=24, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.trunk(x)).squeeze(-1)


def pretrain_trunk(net, x, target, epochs=10):
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.mse_loss(net(x[idx]), target[idx]).backward()
            opt.step()
    net.head.reset_parameters()


class FineTuner:
    def __init__(self, net):
        self.net = net
        self.net.trunk.requires_grad_(False)
        self.optimizer = torch.optim.SGD(net.head.parameters(), lr=PEAK, momentum=0.9)
        self.scheduler = LambdaLR(self.optimizer, lambda e: 0.5 * (1 + math.cos(math.pi * min(e / EPOCHS, 1.0))))

    def unfreeze(self):
        self.net.trunk.requires_grad_(True)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=PEAK, momentum=0.9)

    def run(self, x, y):
        for epoch in range(EPOCHS):
            if epoch == WARM_EPOCHS:
                self.unfreeze()
            self.net.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(BATCH):
                loss = F.mse_loss(self.net(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(idx)
            self.scheduler.step()
            if epoch % 5 == 4:
                print(f"epoch {epoch:2d}  loss {total / len(x):.4f}  lr {self.scheduler.get_last_lr()[0]:.5f}")
        return total / len(x)


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    mixing = rng.standard_normal((6, 24)) / np.sqrt(6)
    x_pre, _, edge = leaves(2000, rng, mixing, 0.0)
    x, area, _ = leaves(800, rng, mixing, 0.8)
    x_test, area_test, _ = leaves(1000, rng, mixing, 0.0)
    net = LeafNet()
    pretrain_trunk(net, x_pre, edge)
    tuner = FineTuner(net)
    final = tuner.run(x, area)
    net.eval()
    with torch.no_grad():
        test_mse = F.mse_loss(net(x_test), area_test).item()
    print(f"train mse {final:.4f}  test mse {test_mse:.4f}  target variance {area_test.var().item():.4f}")


if __name__ == "__main__":
    main()
