"""BYOL on accelerometer windows: the target network follows the online network by a moving average."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
torch.set_num_threads(1)
T = 40


def windows(n):
    label = torch.randint(0, 3, (n,))
    t = torch.arange(T) / T
    freq = torch.tensor([1.5, 3.0, 5.0])[label][:, None] * (1 + 0.08 * torch.randn(n, 1))
    phase = 2 * math.pi * torch.rand(n, 1)
    return torch.sin(2 * math.pi * freq * t + phase) + 0.3 * torch.randn(n, T), label


def augment(x):
    x = torch.roll(x, int(torch.randint(0, T, (1,))), dims=1)
    return x * (1 + 0.2 * torch.randn(len(x), 1)) + 0.1 * torch.randn_like(x)


def block(inp, hidden, out):
    return nn.Sequential(nn.Linear(inp, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out))


class BYOL(nn.Module):
    def __init__(self, dim=16, decay=0.98):
        super().__init__()
        self.online = nn.Sequential(block(T, 64, 32), block(32, 32, dim))
        self.predictor = block(dim, 32, dim)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.decay = decay

    def trainable(self):
        return [*self.online.parameters(), *self.predictor.parameters()]

    @torch.no_grad()
    def follow(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o, 1 - self.decay)
        for t, o in zip(self.target.buffers(), self.online.buffers()):
            t.copy_(o)

    def loss(self, a, b):
        def side(x, y):
            p = F.normalize(self.predictor(self.online(x)), dim=1)
            with torch.no_grad():
                z = F.normalize(self.target(y), dim=1)
            return 2 - 2 * (p * z).sum(1).mean()

        return side(a, b) + side(b, a)


def main():
    model = BYOL()
    data, labels = windows(640)
    test, test_labels = windows(400)
    optimizer = torch.optim.Adam(model.trainable(), lr=2e-3)
    for epoch in range(17):
        model.train()
        for idx in torch.randperm(len(data)).split(64):
            loss = model.loss(augment(data[idx]), augment(data[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.follow()
        if epoch % 8 == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        bank = F.normalize(model.online[0](data), dim=1)
        sim = F.normalize(model.online[0](test), dim=1) @ bank.T
        acc = (labels[sim.topk(5, dim=1).indices].mode(1).values == test_labels).float().mean().item()
        gap = sum((t - o).norm() for t, o in zip(model.target.parameters(), model.online.parameters())).item()
    print(f"kNN accuracy {acc:.3f}, distance target-online {gap:.3f}")


if __name__ == "__main__":
    main()
