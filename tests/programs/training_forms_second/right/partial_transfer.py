from collections import OrderedDict

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(29)

FROZEN = ("features.stem", "features.stage1")


def stage(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU(), nn.MaxPool2d(2))


class PatchNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(OrderedDict(
            stem=stage(3, 8), stage1=stage(8, 12), stage2=stage(12, 16)))
        self.fc = nn.Linear(16 * 4, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def freeze(model, prefixes):
    for name, p in model.named_parameters():
        if any(name.startswith(prefix) for prefix in prefixes):
            p.requires_grad = False


def tissue(count, classes, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (count,), generator=g)
    texture = torch.randn(classes, 3, 16, 16, generator=g)
    return texture[y] + torch.randn(count, 3, 16, 16, generator=g), y


def run(model, x, y, lr, epochs, size=40):
    optimizer = torch.optim.SGD(
        filter(lambda p: p.requires_grad, model.parameters()), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        for i in torch.randperm(len(x)).split(size):
            loss = F.cross_entropy(model(x[i]), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"  epoch {epoch + 1} loss {loss.item():.4f}")


source = PatchNet(classes=6)
print("source task")
run(source, *tissue(240, 6, seed=1), lr=0.05, epochs=4)

target = PatchNet(classes=3)
target.features.load_state_dict(source.features.state_dict())
freeze(target, FROZEN)
print("target task")
x, y = tissue(200, 3, seed=2)
run(target, x, y, lr=0.02, epochs=5)
moved = sum((a - b).abs().sum() for a, b in zip(target.parameters(), source.features.parameters()))
print("distance from the source", moved.item())
