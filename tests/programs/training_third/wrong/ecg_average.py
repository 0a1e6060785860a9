import copy

import torch
from torch import nn
import torch.nn.functional as F


class BeatNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 12, 5, padding=2), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(12, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.AdaptiveAvgPool1d(4),
        )
        self.out = nn.Linear(96, classes)

    def forward(self, x):
        return self.out(self.features(x).flatten(1))


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def beats(n, g):
    t = torch.linspace(0, 1, 64)
    label = torch.randint(0, 3, (n,), generator=g)
    freq = torch.tensor([3.0, 5.0, 8.0])[label]
    phase = torch.rand(n, 1, generator=g) * 6.28
    wave = torch.sin(6.28 * freq[:, None] * t + phase) * 4 + 6
    return (wave + torch.randn(n, 64, generator=g))[:, None], label


@torch.no_grad()
def score(model, x, y):
    was = model.training
    model.eval()
    loss, acc = F.cross_entropy(model(x), y).item(), (model(x).argmax(1) == y).float().mean().item()
    model.train(was)
    return loss, acc


def main(epochs=6, decay=0.8):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(4)
    x, y = beats(384, g)
    xv, yv = beats(192, g)
    model = BeatNet()
    average = WeightAverage(model, decay)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x), generator=g).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
        print(f"epoch {epoch} train {loss.item():.3f}")
    live, averaged = score(model, xv, yv), score(average.shadow, xv, yv)
    print(f"exported loss {averaged[0]:.3f} acc {averaged[1]:.3f}")
    return model, average, live, averaged


if __name__ == "__main__":
    model, average, live, averaged = main()
