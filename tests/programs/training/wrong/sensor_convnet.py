"""1-D convnet on sensor windows whose dense part adapts to the window length."""
import torch
from torch import nn, optim
import torch.nn.functional as F


class SensorNet(nn.Module):
    def __init__(self, channels, classes, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.conv = nn.Sequential(
            nn.Conv1d(channels, 8, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(8, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool1d(2),
        )
        self.dense = None
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h = self.conv(x).flatten(1)
        if self.dense is None:
            self.dense = nn.Linear(h.shape[1], self.hidden)
        return self.out(F.relu(self.dense(h)))


def windows(n, length=48):
    label = torch.randint(3, (n,))
    t = torch.arange(length) / length
    base = torch.stack([torch.sin(2 * torch.pi * k * t) for k in (1, 2, 4)])
    x = base[label].unsqueeze(1) * torch.rand(n, 2, 1) + 0.4 * torch.randn(n, 2, length)
    return x, label


def fit(net, opt, x, y, epochs):
    for epoch in range(epochs):
        running = 0.0
        for idx in torch.randperm(len(x)).split(50):
            opt.zero_grad()
            loss = F.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            opt.step()
            running += loss.item() * len(idx)
        print(f"epoch {epoch + 1}/{epochs} loss {running / len(x):.4f}")


def main():
    torch.manual_seed(37)
    net = SensorNet(channels=2, classes=3)
    opt = optim.Adam(net.parameters(), lr=2e-3)
    x, y = windows(400)
    fit(net, opt, x, y, epochs=6)
    net.eval()
    xt, yt = windows(150)
    with torch.no_grad():
        print("test acc", round((net(xt).argmax(1) == yt).float().mean().item(), 3))
    return net, opt


if __name__ == "__main__":
    main()
