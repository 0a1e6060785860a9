import torch
from torch import nn
import torch.nn.functional as F


class LeafNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU())
        self.out = nn.Linear(12, classes)
        self.saliency = torch.zeros(12)
        self.seen = 0

    def remember(self, grad):
        self.saliency = 0.9 * self.saliency + 0.1 * grad.detach().abs().mean((0, 2, 3))
        self.seen += 1

    def forward(self, x):
        maps = self.features(x)
        if maps.requires_grad:
            maps.register_hook(self.remember)
        return self.out(maps.mean((2, 3)))


class ClippedBranch:
    def __init__(self, module, limit):
        self.module, self.limit = module, limit
        self.handles = []

    def __enter__(self):
        for p in self.module.parameters():
            self.handles.append(p.register_hook(lambda g: g.clamp(-self.limit, self.limit)))

    def __exit__(self, *exc):
        while self.handles:
            self.handles.pop().remove()


def leaves(n, g):
    y = torch.randint(0, 3, (n,), generator=g)
    tint = torch.tensor([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2], [0.6, 0.6, 0.0]])
    return tint[y][:, :, None, None] + 0.8 * torch.randn(n, 3, 8, 8, generator=g), y


def train(model, x, y, epochs=5):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for xb, yb in zip(x.split(32), y.split(32)):
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            with ClippedBranch(model.features, 0.05):
                loss.backward()
            opt.step()
        with torch.no_grad():
            accuracy = (model(x).argmax(-1) == y).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} acc {accuracy:.3f} calls {model.seen} top map {int(model.saliency.argmax())}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = leaves(256, torch.Generator().manual_seed(6))
    train(LeafNet(), x, y)
