"""PointNet-style classifier of scanned solids (sphere, box, cylinder, cone), evaluated with averaged weights."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS = 64
STEPS = 60
DECAY = 0.9
NAMES = ["sphere", "box", "cylinder", "cone"]


def sample_shapes(count, generator):
    """Clouds in centimetres on a turntable whose middle is at (12, 8, 30)."""
    labels = torch.randint(len(NAMES), (count,), generator=generator)
    angle = 2 * math.pi * torch.rand(count, POINTS, generator=generator)
    height = 2 * torch.rand(count, POINTS, generator=generator) - 1
    direction = F.normalize(torch.randn(count, POINTS, 3, generator=generator), dim=-1)
    box = direction / direction.abs().amax(-1, keepdim=True)
    ring = torch.stack([angle.cos(), angle.sin()], -1)
    cylinder = torch.cat([ring, height[..., None]], -1)
    cone = torch.cat([ring * ((1 - height) / 2)[..., None], height[..., None]], -1)
    every = torch.stack([direction, box, cylinder, cone], 1)
    clouds = every[torch.arange(count), labels]
    size = 4 + 2 * torch.rand(count, 1, 1, generator=generator)
    clouds = clouds * size + 0.2 * torch.randn(clouds.shape, generator=generator)
    return clouds + torch.tensor([12.0, 8.0, 30.0]), labels


class PointNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv1d(3, width, 1, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 1, bias=False), nn.BatchNorm1d(2 * width), nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, len(NAMES)),
        )

    def forward(self, clouds):
        features = self.local(clouds.transpose(1, 2)).amax(-1)
        return self.head(features)


class WeightAverage:
    """Exponential moving average of a network, for evaluation."""

    def __init__(self, net, decay):
        self.decay = decay
        self.net = copy.deepcopy(net).eval()
        for p in self.net.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, net):
        for mine, theirs in zip(self.net.parameters(), net.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


@torch.no_grad()
def evaluate(net, clouds, labels):
    logits = net(clouds)
    return F.cross_entropy(logits, labels).item(), (logits.argmax(-1) == labels).float().mean().item()


def main():
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(8)
    net = PointNet()
    average = WeightAverage(net, DECAY)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    held_out = sample_shapes(120, generator)
    for step in range(STEPS):
        clouds, labels = sample_shapes(32, generator)
        loss = F.cross_entropy(net(clouds), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(net)
        if step % 20 == 19:
            test_loss, accuracy = evaluate(average.net, *held_out)
            print(f"step {step + 1:4d}  train loss {loss.item():.3f}  "
                  f"test loss {test_loss:.3f}  test accuracy {accuracy:.3f}")
    return net, average, held_out, loss.item()


if __name__ == "__main__":
    net, average, held_out, train_loss = main()
