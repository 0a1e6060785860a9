import torch
from torch import nn

torch.manual_seed(2)


class GaitNet(nn.Module):
    """Accelerometer windows to activities."""

    def __init__(self, axes=3, channels=12, hidden=24, activities=4):
        super().__init__()
        self.channels = channels
        self.local = nn.Sequential(
            nn.Conv1d(axes, channels, kernel_size=5, stride=2, padding=2),
            nn.BatchNorm1d(channels),
            nn.ReLU())
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, activities)

    def forward(self, window):
        feats = self.local(window)
        feats = feats.view(feats.size(0), -1, self.channels)
        _, last = self.rnn(feats)
        return self.head(last[-1])


def recordings(count=320, length=64, activities=4):
    label = torch.randint(activities, (count,))
    t = torch.arange(length) / length
    freq = (label + 2).float()[:, None]
    phase = torch.rand(count, 1) * 6.28
    base = torch.sin(6.28 * freq * t + phase)
    sweep = torch.cos(6.28 * freq * t * t + phase)
    x = torch.stack([base, sweep, base * sweep], dim=1)
    return x + 0.5 * torch.randn_like(x), label


def fit(model, x, y, epochs=8, size=32):
    opt = torch.optim.NAdam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(size):
            loss = loss_fn(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch + 1} loss {total / len(x):.4f}")


x, y = recordings()
net = GaitNet()
fit(net, x, y)
net.eval()
with torch.no_grad():
    print("accuracy", (net(x).argmax(1) == y).float().mean().item())
