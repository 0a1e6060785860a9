"""Segmentation of blobs; evaluated with an exponential average of the weights (tf-style, zero debiased).

The average starts from zeros and is divided by 1 - decay^n when it is read. It covers the weights only; the running
statistics of batch norm are counted anew for the averaged weights by a sweep over the training images.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)

SIZE = 20
BATCH = 25
EPOCHS = 7
DECAY = 0.98


def blobs(n):
    """Bright ellipses on an uneven background; the mask is 1 inside of an ellipse."""
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    mask = torch.zeros(n, SIZE, SIZE)
    for _ in range(2):
        cy, cx = (torch.rand(2, n, 1, 1) - 0.5) * 1.4
        ry, rx = 0.15 + 0.3 * torch.rand(2, n, 1, 1)
        mask = torch.maximum(mask, (((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1).float())
    slope = torch.randn(n, 2, 1, 1)
    image = 1.2 * mask + slope[:, :1, 0] * yy + slope[:, 1:, 0] * xx + 0.5 * torch.randn(n, SIZE, SIZE)
    return image.unsqueeze(1), mask.unsqueeze(1)


def unit(c_in, c_out, dilation=1):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=dilation, dilation=dilation, bias=False),
        nn.BatchNorm2d(c_out), nn.ReLU(),
    )


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.count = 0
        self.sums = {name: torch.zeros_like(p) for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        self.count += 1
        for name, p in model.named_parameters():
            self.sums[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

    @torch.no_grad()
    def write_to(self, model):
        scale = 1 - self.decay ** self.count
        for name, p in model.named_parameters():
            p.copy_(self.sums[name] / scale)


@torch.no_grad()
def recount_statistics(model, images):
    """Plain averages of the batch statistics over the training images."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.reset_running_stats()
            m.momentum = None
    model.train()
    for chunk in images.split(100):
        model(chunk)
    return model.eval()


def dice(model, images, masks):
    with torch.no_grad():
        guess = (model(images) > 0).float()
    return (2 * (guess * masks).sum() / (guess.sum() + masks.sum())).item()


train_x, train_y = blobs(400)
test_x, test_y = blobs(200)
model = nn.Sequential(unit(1, 10), unit(10, 12, 2), unit(12, 12, 3), nn.Conv2d(12, 1, 1))
average = WeightAverage(model, DECAY)
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, alpha=0.9, momentum=0.5)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        loss = F.binary_cross_entropy_with_logits(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        total += loss.item() * len(idx)

    smooth = copy.deepcopy(model)
    average.write_to(smooth)
    recount_statistics(smooth, train_x)
    model.eval()
    print(f"epoch {epoch + 1}: loss {total / len(train_x):.4f}  test dice {dice(model, test_x, test_y):.3f}"
          f"  averaged {dice(smooth, test_x, test_y):.3f}")
