import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(51)


class Trunk(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * width)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(x))).mean(dim=(2, 3))


class FrozenTrunk(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk.requires_grad_(False).eval()

    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, x):
        return self.trunk(x)


class Classifier(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(16, classes))

    def forward(self, x):
        return self.head(self.trunk(x))


def images(n, classes, gain):
    labels = torch.randint(0, classes, (n,))
    grid = torch.arange(10.0)
    waves = torch.sin(grid[None] * (labels[:, None] + 1) * 0.6)
    pattern = waves[:, None, :, None] * waves[:, None, None, :]
    return (pattern + 0.3 * torch.randn(n, 3, 10, 10)) * gain, labels


def fit(model, x, y, steps, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(x), (32,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


x, y = images(256, 4, 1.0)
source = Classifier(Trunk(), 4)
fit(source, x, y, 30, 5e-3)
print(f"source accuracy {accuracy(source, x, y):.3f}")

target = Classifier(FrozenTrunk(source.trunk), 3)
new_x, new_y = images(192, 3, 1.4)
loss = fit(target, new_x, new_y, 30, 1e-2)
print(f"target loss {loss:.3f} accuracy {accuracy(target, new_x, new_y):.3f}")
print(f"source accuracy afterwards {accuracy(source, x, y):.3f}")
