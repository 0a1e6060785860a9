"""Small residual network on drawn shapes, ported from the Keras version (SGD + warmup + cosine decay)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

CLASSES = ("disk", "square", "cross", "ring")
SIZE = 16
EPOCHS = 6
BATCH = 32
PEAK_LR = 0.08
WARMUP = 15


def draw(n):
    """Gray images with one noisy shape each, at a random place and of a random radius."""
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    labels = torch.randint(len(CLASSES), (n,))
    cy, cx = torch.randint(5, SIZE - 5, (2, n))
    r = 2.5 + 2.0 * torch.rand(n)
    dy = (yy[None] - cy[:, None, None]).float()
    dx = (xx[None] - cx[:, None, None]).float()
    dist = (dy ** 2 + dx ** 2).sqrt()
    rr = r[:, None, None]
    disk = dist <= rr
    square = torch.maximum(dy.abs(), dx.abs()) <= rr * 0.85
    cross = ((dy.abs() <= 1) & (dx.abs() <= rr)) | ((dx.abs() <= 1) & (dy.abs() <= rr))
    ring = (dist <= rr + 0.5) & (dist >= rr - 1.0)
    stack = torch.stack([disk, square, cross, ring], dim=1).float()
    img = stack[torch.arange(n), labels]
    img = img * (0.6 + 0.8 * torch.rand(n, 1, 1)) + 0.2 * torch.randn(n, SIZE, SIZE)
    return img.unsqueeze(1), labels


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


train_x, train_y = draw(1200)
test_x, test_y = draw(600)

model = nn.Sequential(
    Residual(1, 8),
    Residual(8, 16, stride=2),
    Residual(16, 24, stride=2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(24, len(CLASSES)),
)

steps_per_epoch = len(train_x) // BATCH
total_steps = EPOCHS * steps_per_epoch


def warmup_cosine(step):
    """Linear warmup to the peak, then half a cosine down to zero."""
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    progress = (step - WARMUP) / max(1, total_steps - WARMUP)
    return PEAK_LR * 0.5 * (1.0 + math.cos(math.pi * progress))


optimizer = torch.optim.SGD(model.parameters(), lr=PEAK_LR, momentum=0.9, nesterov=True, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=warmup_cosine)

for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(train_x))
    running = 0.0
    for b in range(steps_per_epoch):
        idx = order[b * BATCH:(b + 1) * BATCH]
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print(f"epoch {epoch}: loss {running / steps_per_epoch:.4f}")

model.eval()
with torch.no_grad():
    test_acc = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"test accuracy {test_acc:.3f}")
