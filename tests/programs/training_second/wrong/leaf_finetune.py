import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)


class Backbone(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * width)

    def forward(self, x):
        x = F.gelu(self.bn1(self.conv1(x)))
        x = F.gelu(self.bn2(self.conv2(x)))
        return x.mean(dim=(2, 3))


class LeafNet(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def images(n, classes, shift, gain):
    labels = torch.randint(0, classes, (n,))
    grid = torch.arange(12.0)
    waves = torch.sin(grid[None] * (labels[:, None] + 1) * 0.5)
    base = waves[:, None, :, None] * waves[:, None, None, :]
    return (base + 0.3 * torch.randn(n, 3, 12, 12)) * gain + shift, labels


def fit(model, params, x, y, steps, lr):
    optimizer = torch.optim.Adam(params, lr=lr)
    for step in range(steps):
        model.train()
        pick = torch.randint(0, len(x), (32,))
        loss = F.cross_entropy(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


source_x, source_y = images(256, 4, 0.0, 1.0)
model = LeafNet(Backbone(), 4)
fit(model, model.parameters(), source_x, source_y, 25, 5e-3)
print(f"source accuracy {accuracy(model, source_x, source_y):.3f}")

target_x, target_y = images(192, 3, 0.8, 1.7)
source_head, model.head = model.head, nn.Linear(16, 3)
for p in model.backbone.parameters():
    p.requires_grad_(False)
loss = fit(model, model.head.parameters(), target_x, target_y, 25, 1e-2)
print(f"target loss {loss:.3f} accuracy {accuracy(model, target_x, target_y):.3f}")

target_head, model.head = model.head, source_head
print(f"source accuracy with the old head {accuracy(model, source_x, source_y):.3f}")
