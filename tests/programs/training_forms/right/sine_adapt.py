import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def regressor():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


class Adapter:
    def __init__(self, net, inner=0.1, steps=1):
        self.net, self.inner, self.steps = net, inner, steps
        self.names = [k for k, _ in net.named_parameters()]

    def start(self):
        return dict(zip(self.names, self.net.parameters()))

    def predict(self, weights, x):
        return functional_call(self.net, weights, (x,))

    def adapt(self, x, y):
        weights = self.start()
        for _ in range(self.steps):
            loss = F.mse_loss(self.predict(weights, x), y)
            slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {k: w - self.inner * g for (k, w), g in zip(weights.items(), slopes)}
        return weights


def waves(count, shots):
    for _ in range(count):
        size, phase = 0.5 + 2 * torch.rand(()), 3.14 * torch.rand(())
        x = 6 * torch.rand(2 * shots, 1) - 3
        y = size * torch.sin(x + phase)
        yield x[:shots], y[:shots], x[shots:], y[shots:]


def meta_train(net, rounds, tasks, shots):
    adapter = Adapter(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for r in range(rounds):
        losses = []
        for sx, sy, qx, qy in waves(tasks, shots):
            weights = adapter.adapt(sx, sy)
            losses.append(F.mse_loss(adapter.predict(weights, qx), qy))
        outer = torch.stack(losses).mean()
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        if r % 30 == 29:
            print(f"round {r + 1}: query loss {outer.item():.4f}")
    return adapter


def main():
    torch.manual_seed(53)
    adapter = meta_train(regressor(), rounds=150, tasks=4, shots=10)
    total = 0.0
    for sx, sy, qx, qy in waves(40, 10):
        total += F.mse_loss(adapter.predict(adapter.adapt(sx, sy), qx), qy).item()
    print(f"new waves: {total / 40:.4f}")


if __name__ == "__main__":
    main()
