"""Snapshot ensemble of a 1-D CNN on short tones: cyclic cosine learning rate, a copy of the weights
at the end of every cycle; also one net with averaged weights, whose batch norm is measured anew."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)

CLASSES = 6
LENGTH = 96
CYCLES = 4
EPOCHS_PER_CYCLE = 4


def make_tones(n):
    """Chords of two frequencies; the class decides which two."""
    y = torch.randint(CLASSES, (n,))
    t = torch.arange(LENGTH) / LENGTH
    low = 4 + (y % 3)[:, None] + 0.15 * torch.randn(n, 1)
    high = 11 + 2 * (y // 3)[:, None] + 0.3 * torch.randn(n, 1)
    phase = 6.28 * torch.rand(2, n, 1)
    x = torch.sin(6.28 * low * t + phase[0]) + 0.8 * torch.sin(6.28 * high * t + phase[1])
    return (x + 1.2 * torch.randn(n, LENGTH)).unsqueeze(1), y


def make_net(width=16):
    return nn.Sequential(
        nn.Conv1d(1, width, 9, stride=2, padding=4), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Conv1d(width, 2 * width, 9, stride=2, padding=4), nn.BatchNorm1d(2 * width), nn.ReLU(),
        nn.Conv1d(2 * width, 2 * width, 5, padding=2), nn.BatchNorm1d(2 * width), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(2 * width, CLASSES),
    )


@torch.no_grad()
def average_weights(nets):
    """Mean of all parameters; buffers stay those of the first net until they are measured."""
    mean = copy.deepcopy(nets[0])
    for target, *sources in zip(mean.parameters(), *(net.parameters() for net in nets)):
        target.copy_(torch.stack(sources).mean(0))
    return mean


@torch.no_grad()
def refresh_batch_norm(net, loader):
    layers = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
    for m in layers:
        m.reset_running_stats()
        m.momentum = None  # cumulative mean over the whole pass
    net.train()
    for x, _ in loader:
        net(x)
    net.eval()


@torch.no_grad()
def probabilities(net, x):
    net.eval()
    return F.softmax(net(x), dim=1)


train_loader = DataLoader(TensorDataset(*make_tones(960)), batch_size=48, shuffle=True)
test_x, test_y = make_tones(800)

net = make_net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.9, weight_decay=1e-3)
steps_per_cycle = EPOCHS_PER_CYCLE * len(train_loader)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=steps_per_cycle)

snapshots = []
for cycle in range(CYCLES):
    for _ in range(EPOCHS_PER_CYCLE):
        net.train()
        for x, y in train_loader:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
    snapshots.append(copy.deepcopy(net))
    guess = probabilities(snapshots[-1], test_x).argmax(1)
    print(f"snapshot {cycle + 1}: accuracy {(guess == test_y).float().mean():.3f}")

members = torch.stack([probabilities(s, test_x) for s in snapshots[1:]])
ensemble_guess = members.mean(0).argmax(1)
print(f"ensemble of the last {len(members)}: accuracy {(ensemble_guess == test_y).float().mean():.3f}")

averaged = average_weights(snapshots[-2:])
refresh_batch_norm(averaged, train_loader)
guess = probabilities(averaged, test_x).argmax(1)
print(f"averaged weights of the last 2: accuracy {(guess == test_y).float().mean():.3f}")
