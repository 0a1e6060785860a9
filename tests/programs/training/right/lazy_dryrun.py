"""Convnet with a dense layer sized by the first call."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class WindowNet(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.conv = nn.Conv1d(channels, 8, 5, padding=2)
        self.hidden = None
        self.out = nn.Linear(24, classes)

    def forward(self, x):
        h = F.max_pool1d(F.relu(self.conv(x)), 4).flatten(1)
        if self.hidden is None:
            self.hidden = nn.Linear(h.shape[1], 24)
        return self.out(torch.tanh(self.hidden(h)))


def build(channels, classes, length):
    net = WindowNet(channels, classes)
    with torch.no_grad():
        net(torch.zeros(1, channels, length))
    return net


def windows(n, length=40):
    y = torch.randint(3, (n,))
    t = torch.arange(length) / length
    waves = torch.stack([torch.sin(2 * torch.pi * k * t) for k in (1, 3, 5)])
    return waves[y].unsqueeze(1) + 0.7 * torch.randn(n, 2, length), y


def main():
    torch.manual_seed(14)
    net = build(2, 3, 40)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = windows(480)
    x_test, y_test = windows(160)
    for epoch in range(6):
        for idx in torch.randperm(len(x)).split(48):
            opt.zero_grad()
            loss = F.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            opt.step()
        with torch.no_grad():
            acc = (net(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
