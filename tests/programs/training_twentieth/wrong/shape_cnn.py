"""First CNN project: classify noisy 16x16 drawings (square, cross, ring, stripes)."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 7
EPOCHS = 5
BATCH = 64
LR = 0.02

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def draw(kind):
    img = np.zeros((16, 16), dtype=np.float32)
    r, c = rng.integers(2, 6, size=2)
    s = int(rng.integers(5, 9))
    if kind == 0:
        img[r:r + s, c] = img[r:r + s, c + s - 1] = 1
        img[r, c:c + s] = img[r + s - 1, c:c + s] = 1
    elif kind == 1:
        img[r:r + s, c + s // 2] = 1
        img[r + s // 2, c:c + s] = 1
    elif kind == 2:
        yy, xx = np.mgrid[:16, :16]
        d = np.hypot(yy - r - s / 2, xx - c - s / 2)
        img[np.abs(d - s / 2) < 0.7] = 1
    else:
        img[r:r + s:2, c:c + s] = 1
    return img + 0.45 * rng.standard_normal((16, 16)).astype(np.float32)


def make_set(n):
    y = rng.integers(0, 4, size=n)
    x = np.stack([draw(k) for k in y])[:, None]
    return torch.from_numpy(x), torch.from_numpy(y)


class ShapeNet(nn.Module):
    def __init__(self, width=12, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.fc1 = nn.Linear(2 * width * 16, 48)
        self.fc2 = nn.Linear(48, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def he_init(m):
    """He-normal weights, zero biases."""
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        fan_in = m.weight[0].numel()
        std = math.sqrt(2.0 / fan_in)
        m.weight = nn.Parameter(torch.randn(m.weight.shape) * std)
        nn.init.zeros_(m.bias)


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


train_x, train_y = make_set(1500)
test_x, test_y = make_set(400)

net = ShapeNet()
optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9)
net.apply(he_init)

for epoch in range(EPOCHS):
    net.train()
    order = torch.randperm(len(train_x))
    running, seen = 0.0, 0
    for start in range(0, len(order), BATCH):
        idx = order[start:start + BATCH]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(train_x[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
        seen += len(idx)
    print(f"epoch {epoch + 1}: loss {running / seen:.4f}  test acc {accuracy(net, test_x, test_y):.3f}")

final_acc = accuracy(net, test_x, test_y)
print(f"final test accuracy: {final_acc:.3f}")
