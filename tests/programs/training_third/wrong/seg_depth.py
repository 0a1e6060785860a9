from itertools import chain

import torch
from torch import nn
import torch.nn.functional as F


class Trunk(nn.Sequential):
    def __init__(self, width=12):
        super().__init__(
            nn.Conv2d(3, width, 3, padding=1), nn.GroupNorm(3, width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )


class ScenePredictor(nn.Module):
    def __init__(self, classes=4, width=12):
        super().__init__()
        self.trunk = Trunk(width)
        self.segment = nn.Conv2d(width, classes, 1)
        self.depth = nn.Sequential(nn.Conv2d(width, 8, 1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, image):
        shared = self.trunk(image)
        return self.segment(shared), self.depth(shared).squeeze(1)


class TaskOptimizers:
    def __init__(self, model, lr_segment, lr_depth):
        self.members = {
            "segment": torch.optim.Adam(chain(model.trunk.parameters(), model.segment.parameters()), lr=lr_segment),
            "depth": torch.optim.Adam(chain(model.trunk.parameters(), model.depth.parameters()), lr=lr_depth),
        }

    def zero_grad(self):
        for opt in self.members.values():
            opt.zero_grad()

    def step(self):
        for opt in self.members.values():
            opt.step()


def scenes(n, g):
    image = torch.rand(n, 3, 12, 12, generator=g)
    label = (image.mean(1) * 8).long().clamp(2, 5) - 2
    distance = image[:, 0] * 2 + image[:, 2]
    return image, label, distance


def train(model, opts, data, steps=20, batch=16):
    image, label, distance = data
    for step in range(steps):
        rows = torch.arange(step * batch, (step + 1) * batch) % len(image)
        logits, depth = model(image[rows])
        seg = F.cross_entropy(logits, label[rows])
        dep = F.l1_loss(depth, distance[rows])
        opts.zero_grad()
        (seg + 0.5 * dep).backward()
        opts.step()
        if step % 5 == 4:
            print(f"step {step + 1} seg {seg.item():.3f} depth {dep.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = scenes(96, torch.Generator().manual_seed(1))
    model = ScenePredictor()
    opts = TaskOptimizers(model, lr_segment=3e-3, lr_depth=3e-3)
    train(model, opts, data)
