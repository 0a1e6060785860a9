"""BinaryConnect for a motor-state classifier: forward and backward with the signs of the weights, steps on real weights."""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)

SENSORS = 18
STATES = 4


class MotorNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.fc1 = nn.Linear(SENSORS, hidden, bias=False)
        self.bn1 = nn.BatchNorm1d(hidden)
        self.fc2 = nn.Linear(hidden, hidden, bias=False)
        self.bn2 = nn.BatchNorm1d(hidden)
        self.fc3 = nn.Linear(hidden, STATES, bias=False)
        self.bn3 = nn.BatchNorm1d(STATES)
        for layer in (self.fc1, self.fc2, self.fc3):
            nn.init.uniform_(layer.weight, -0.3, 0.3)

    def binary_weights(self):
        return [m.weight for m in self.modules() if isinstance(m, nn.Linear)]

    def forward(self, x):
        x = F.relu(self.bn1(self.fc1(x)))
        x = F.relu(self.bn2(self.fc2(x)))
        return self.bn3(self.fc3(x))


class SignSwap:
    """Holds the real values of the weights while the network computes with their signs."""

    def __init__(self, weights):
        self.weights = weights
        self.real = [w.detach().clone() for w in weights]

    @contextlib.contextmanager
    def active(self):
        for w, real in zip(self.weights, self.real):
            real.copy_(w.data)
            w.data.copy_(torch.where(real >= 0, 1.0, -1.0))
        try:
            yield
        finally:
            for w, real in zip(self.weights, self.real):
                w.data.copy_(real)

    def clip(self):
        for w in self.weights:
            w.data.clamp_(-1.0, 1.0)


def make_data(size, centers):
    y = torch.randint(0, STATES, (size,))
    x = centers[y] + torch.randn(size, SENSORS)
    x[:, 0] = x[:, 0] * x[:, 1]
    return x, y


def train(net, swap, optimizer, schedule, x, y, epochs, batch=50):
    losses = []
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for index in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            with swap.active():
                loss = F.cross_entropy(net(x[index]), y[index])
                loss.backward()
            optimizer.step()
            swap.clip()
            total += loss.item() * len(index)
        schedule.step()
        losses.append(total / len(y))
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:2d}  loss {losses[-1]:.3f}")
    return losses


@torch.no_grad()
def accuracy(net, swap, x, y):
    net.eval()
    with swap.active():
        return (net(x).argmax(dim=1) == y).float().mean().item()


def main():
    centers = 0.9 * torch.randn(STATES, SENSORS)
    x, y = make_data(900, centers)
    x_test, y_test = make_data(500, centers)
    net = MotorNet()
    swap = SignSwap(net.binary_weights())
    start = [w.detach().clone() for w in swap.weights]
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    print(f"before training: accuracy {accuracy(net, swap, x_test, y_test):.3f}")
    losses = train(net, swap, optimizer, schedule, x, y, epochs=16)
    flips = [((w.detach() >= 0) != (s >= 0)).float().mean().item() for w, s in zip(swap.weights, start)]
    result = accuracy(net, swap, x_test, y_test)
    print(f"accuracy with binary weights {result:.3f}")
    print("share of flipped signs per layer:", [round(f, 3) for f in flips])
    return net, swap, losses, result, flips


if __name__ == "__main__":
    net, swap, losses, result, flips = main()
