import torch
import torch.nn.functional as F
from torch import nn


class SmallCNN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.GELU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.GELU(),
            nn.Flatten(),
            nn.Dropout(0.1),
        )
        self.head = nn.Linear(12 * 25, classes)

    def forward(self, x):
        return self.head(self.body(x))


def attack(model, x, y, radius, steps):
    model.eval()
    delta = torch.zeros_like(x)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (slope,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + radius / steps * slope.sign()).clamp(-radius, radius)
    model.train()
    return x + delta


def strokes(count, generator):
    shapes = torch.zeros(3, 10, 10)
    shapes[0, 2:8, 4:6] = 1
    shapes[1, 4:6, 2:8] = 1
    shapes[2, 2:8, 2:8] = torch.eye(6)
    labels = torch.randint(0, 3, (count,), generator=generator)
    return shapes[labels].unsqueeze(1) + 0.4 * torch.randn(count, 1, 10, 10, generator=generator), labels


def report(model, x, y, radius):
    broken = attack(model, x, y, radius, steps=3)
    model.eval()
    with torch.no_grad():
        clean = (model(x).argmax(1) == y).float().mean().item()
        robust = (model(broken).argmax(1) == y).float().mean().item()
    model.train()
    return clean, robust


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    x, y = strokes(192, generator)
    x_test, y_test = strokes(96, generator)
    model = SmallCNN(3)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        for idx in torch.randperm(len(x)).split(32):
            hostile = attack(model, x[idx], y[idx], radius=0.2, steps=2)
            loss = 0.5 * (F.cross_entropy(model(x[idx]), y[idx]) + F.cross_entropy(model(hostile), y[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        clean, robust = report(model, x_test, y_test, 0.2)
        print(f"epoch {epoch} loss {loss.item():.4f} clean {clean:.3f} robust {robust:.3f}")


if __name__ == "__main__":
    main()
