"""Lab 2: a convolutional network with our own layers, trained on drawn abacus glyphs.

The lab asks for BatchNorm to be written by hand (nn.BatchNorm2d is not allowed).
"""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIDE = 6, 12


def draw_glyphs(n, gen):
    """Class k = k + 1 beads on a rod; the exposure of the photos varies."""
    labels = torch.randint(CLASSES, (n,), generator=gen)
    images = torch.zeros(n, 1, SIDE, SIDE)
    cols = torch.randint(2, SIDE - 2, (n,), generator=gen)
    for i, (k, c) in enumerate(zip(labels.tolist(), cols.tolist())):
        rows = torch.randperm(SIDE // 2, generator=gen)[:k + 1] * 2
        images[i, 0, :, c] = 0.3
        for dc in (-1, 0, 1):
            images[i, 0, rows, c + dc] = 1.0
    exposure = 0.1 + 0.2 * torch.rand(n, 1, 1, 1, generator=gen)
    noise = 0.15 * torch.randn(images.shape, generator=gen)
    return images + exposure + noise, labels


class MyBatchNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.gamma = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.moving_mean = torch.zeros(1, channels, 1, 1)
        self.moving_var = torch.ones(1, channels, 1, 1)

    def forward(self, x):
        if self.training:
            mean = x.mean(dim=(0, 2, 3), keepdim=True)
            var = x.var(dim=(0, 2, 3), unbiased=False, keepdim=True)
            with torch.no_grad():
                self.moving_mean.lerp_(mean, self.momentum)
                self.moving_var.lerp_(var, self.momentum)
        else:
            mean, var = self.moving_mean, self.moving_var
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class GlyphNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.bn1 = MyBatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.bn2 = MyBatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width * 9, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


def train(model, images, labels, epochs=8, batch=50):
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(model(images[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch + 1}: train loss {total / len(images):.4f}")


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


torch.manual_seed(5)
gen = torch.Generator().manual_seed(5)
train_x, train_y = draw_glyphs(900, gen)
test_x, test_y = draw_glyphs(400, gen)

net = GlyphNet()
train(net, train_x, train_y)

# hand-in format: weights file + a script that loads it and reports test accuracy
handin = io.BytesIO()
torch.save(net.state_dict(), handin)
handin.seek(0)

submitted = GlyphNet()
submitted.load_state_dict(torch.load(handin))
test_acc = accuracy(submitted, test_x, test_y)
print(f"test accuracy of the submitted weights: {test_acc:.3f}")
