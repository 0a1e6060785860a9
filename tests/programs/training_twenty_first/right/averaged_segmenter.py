"""Cell segmentation with stochastic weight averaging.

The weights of the last epochs are averaged with equal weight. Batch-norm statistics belong to a set of
weights, so those of the averaged network are estimated anew on the training pictures before testing.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)

SIZE, CLASSES = 24, 3  # background, cell body, nucleus


def slides(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    masks = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    for i in range(n):
        for _ in range(int(torch.randint(1, 4, ()))):
            cy, cx = torch.randint(4, SIZE - 4, (2,))
            radius = 3.0 + 3.0 * torch.rand(())
            distance = ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
            masks[i][distance < radius] = 1
            masks[i][distance < 0.4 * radius] = 2
    palette = torch.tensor([[0.9, 0.8, 0.9], [0.7, 0.4, 0.7], [0.4, 0.3, 0.6]])
    images = palette[masks].permute(0, 3, 1, 2)
    stain = 1 + 0.2 * torch.randn(n, 3, 1, 1)
    return images * stain + 0.25 * torch.randn(n, 3, SIZE, SIZE), masks


def block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enter = block(3, width)
        self.down = block(width, 2 * width)
        self.up = block(3 * width, width)
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        fine = self.enter(x)
        coarse = self.down(F.max_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.head(self.up(torch.cat([fine, coarse], dim=1)))


@torch.no_grad()
def accumulate(average, model, count):
    for avg, p in zip(average.parameters(), model.parameters()):
        avg += (p - avg) / (count + 1)


@torch.no_grad()
def refresh_statistics(model, images):
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # plain mean over the batches
    model.train()
    for part in images.split(50):
        model(part)
    model.eval()
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum


@torch.no_grad()
def mean_iou(model, images, masks):
    assert not model.training
    predicted = model(images).argmax(1)
    ious = []
    for c in range(CLASSES):
        both, either = (predicted == c) & (masks == c), (predicted == c) | (masks == c)
        ious.append(both.sum() / either.sum().clamp(min=1))
    return torch.stack(ious).mean().item()


train_x, train_y = slides(300)
test_x, test_y = slides(80)

model = SmallUNet()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
EPOCHS, AVERAGE_FROM = 9, 4
averaged = 0

for epoch in range(EPOCHS):
    model.train()
    for idx in torch.randperm(len(train_x)).split(20):
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= AVERAGE_FROM:
        accumulate(average, model, averaged)
        averaged += 1

model.eval()
print(f"last weights      mIoU {mean_iou(model, test_x, test_y):.3f}")
refresh_statistics(average, train_x)
print(f"averaged weights  mIoU {mean_iou(average, test_x, test_y):.3f}  ({averaged} snapshots)")
