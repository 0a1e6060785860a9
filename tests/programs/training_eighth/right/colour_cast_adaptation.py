"""Adapting an image classifier to a new camera without labels: only normalization statistics follow the new pictures."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIZE = 4, 12


def pictures(n, gen, cast=False):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    axis = torch.linspace(-1, 1, SIZE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    planes = torch.stack([xx, yy, xx * yy, xx ** 2 + yy ** 2])
    wave = torch.sin(5 * planes[y] + 0.3 * torch.randn(n, 1, 1, generator=gen))
    tint = torch.tensor([1.0, 0.7, 0.4]).view(1, 3, 1, 1)
    x = wave.unsqueeze(1) * tint + 0.4 * torch.randn(n, 3, SIZE, SIZE, generator=gen)
    if cast:
        x = x * torch.tensor([2.2, 0.6, 1.5]).view(1, 3, 1, 1) + torch.tensor([1.5, -1.0, 0.8]).view(1, 3, 1, 1)
    return x, y


class Classifier(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.norm_in = nn.BatchNorm2d(3, affine=False)
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(8 * width, CLASSES)

    def forward(self, x):
        return self.out(self.drop(self.features(self.norm_in(x))))


def norm_layers(model):
    return [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


def train(model, x, y, gen, epochs=6):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch} loss {total / len(x):.3f}")


@torch.no_grad()
def adapt(model, x, gen, passes=3):
    model.requires_grad_(False)
    model.eval()
    for layer in norm_layers(model):
        layer.reset_running_stats()
        layer.momentum = None
        layer.train()
    for _ in range(passes):
        for idx in torch.randperm(len(x), generator=gen).split(64):
            model(x[idx])
    model.eval()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    x, y = pictures(512, gen)
    test = pictures(256, gen)
    unlabelled, _ = pictures(256, gen, cast=True)
    other = pictures(256, gen, cast=True)
    model = Classifier()
    train(model, x, y, gen)
    home = accuracy(model, *test)
    naive = accuracy(model, *other)
    adapt(model, unlabelled, gen)
    adapted = accuracy(model, *other)
    print(f"first camera {home:.3f}, second camera {naive:.3f}, after adaptation {adapted:.3f}")
    return model, home, naive, adapted


if __name__ == "__main__":
    model, home, naive, adapted = main()
