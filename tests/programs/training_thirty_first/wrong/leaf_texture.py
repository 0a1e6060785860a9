"""Classifies leaf textures by the direction of their veins, with a moving average of the weights.

The average of the weights is updated after every step and is the network that is delivered;
the trained network itself is only reported for comparison.
"""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

SIZE, KINDS = 16, 4
STEPS, BATCH = 80, 32


def make_leaves(n, generator):
    kind = torch.randint(0, KINDS, (n,), generator=generator)
    angle = kind.float() * math.pi / KINDS + 0.1 * torch.randn(n, generator=generator)
    phase = 2 * math.pi * torch.rand(n, generator=generator)
    axis = torch.arange(SIZE, dtype=torch.float32)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    wave = x * torch.cos(angle)[:, None, None] + y * torch.sin(angle)[:, None, None]
    image = 0.5 + 0.2 * torch.sin(1.3 * wave + phase[:, None, None])
    image = image + 0.15 * torch.randn(n, SIZE, SIZE, generator=generator)
    return image.unsqueeze(1), kind


def conv_block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, 8), nn.MaxPool2d(2),
            conv_block(8, 16), nn.MaxPool2d(2),
            conv_block(16, 24),
        )
        self.head = nn.Linear(24, KINDS)

    def forward(self, image):
        return self.head(self.features(image).mean(dim=(2, 3)))


class AverageNet:
    """Exponential moving average of a network, usable for evaluation."""

    def __init__(self, model, decay):
        self.decay = decay
        self.module = copy.deepcopy(model)
        self.module.requires_grad_(False)
        self.module.eval()
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for average, current in zip(self.module.parameters(), model.parameters()):
            average.mul_(decay).add_(current, alpha=1 - decay)


@torch.no_grad()
def accuracy(net, images, kinds):
    was_training = net.training
    net.eval()
    hits = (net(images).argmax(dim=1) == kinds).float().mean().item()
    net.train(was_training)
    return hits


def main():
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(80)
    images, kinds = make_leaves(640, generator)
    test_images, test_kinds = make_leaves(300, generator)

    model = LeafNet()
    average = AverageNet(model, decay=0.95)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    model.train()
    for step in range(STEPS):
        pick = torch.randint(0, len(images), (BATCH,), generator=generator)
        loss = F.cross_entropy(model(images[pick]), kinds[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if step % 16 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")

    print(f"trained network:   test accuracy {accuracy(model, test_images, test_kinds):.3f}")
    print(f"delivered average: test accuracy {accuracy(average.module, test_images, test_kinds):.3f}")
    return model, average


if __name__ == "__main__":
    model, average = main()
