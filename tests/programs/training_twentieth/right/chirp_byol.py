"""BYOL (Grill et al., 2020) on short synthetic chirps, then a linear probe on the frozen encoder.

Two random crops of a clip pass through an online network with a predictor and a slowly moving target network without
one; there are no negatives.
"""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(17)
torch.set_num_threads(1)

LENGTH, CROP, CLASSES = 160, 128, 6


def clips(n):
    label = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    start = 6.0 + 4.0 * (label % 3).float().unsqueeze(1) + 0.5 * torch.randn(n, 1)
    slope = torch.where(label < 3, 8.0, -4.0).unsqueeze(1)
    phase = 2 * math.pi * (start * t + 0.5 * slope * t ** 2 + torch.rand(n, 1))
    return (phase.sin() + 0.3 * torch.randn(n, LENGTH)).unsqueeze(1), label


def augment(wave):
    offsets = torch.randint(0, LENGTH - CROP + 1, (len(wave),))
    index = offsets.unsqueeze(1) + torch.arange(CROP)
    view = wave.squeeze(1).gather(1, index)
    gain = torch.empty(len(wave), 1).uniform_(0.6, 1.4)
    return (gain * view + 0.2 * torch.randn_like(view)).unsqueeze(1)


def mlp(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 9, 4, 4), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 9, 4, 4), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(256, 48))
        self.projector = mlp(48, 64, 24)

    def forward(self, x):
        return self.projector(self.encoder(x))


@torch.no_grad()
def follow(target, online, momentum):
    for slow, fast in zip(target.parameters(), online.parameters()):
        slow.lerp_(fast, 1.0 - momentum)


def regression_loss(prediction, goal):
    return 2 - 2 * F.cosine_similarity(prediction, goal.detach(), dim=-1).mean()


def probe(encoder):
    encoder.eval()
    x, y = clips(1000)
    x_test, y_test = clips(1000)
    with torch.no_grad():
        train, test = encoder(x[..., :CROP]), encoder(x_test[..., :CROP])
    mean, std = train.mean(0), train.std(0) + 1e-6
    train, test = (train - mean) / std, (test - mean) / std
    head = nn.Linear(48, CLASSES)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.03)
    for _ in range(150):
        loss = F.cross_entropy(head(train), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (head(test).argmax(1) == y_test).float().mean().item()


def main():
    online, predictor = Branch(), mlp(24, 64, 24)
    untrained = copy.deepcopy(online.encoder)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=2e-3, weight_decay=1e-4)
    steps = 210
    for step in range(1, steps + 1):
        wave, _ = clips(96)
        one, two = augment(wave), augment(wave)
        with torch.no_grad():
            goal_one, goal_two = target(one), target(two)
        loss = 0.5 * (regression_loss(predictor(online(one)), goal_two) + regression_loss(predictor(online(two)), goal_one))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow(target, online, 1 - 0.03 * (math.cos(math.pi * step / steps) + 1) / 2)
        if step % 70 == 0:
            spread = F.normalize(goal_one, dim=1).std(0).mean().item()
            print(f"step {step:4d}  loss {loss.item():.4f}  spread of the goals {spread:.3f}")
    print(f"probe accuracy: untrained {probe(untrained):.3f}, trained {probe(online.encoder):.3f}")


if __name__ == "__main__":
    main()
