"""Classify grain samples by their reflectance spectra; evaluation uses a moving average of the weights."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(29)

CLASSES = 4
POINTS = 64
TRAIN = 336
TEST = 256
BATCH = 48
EPOCHS = 12
DECAY = 0.9


def make_spectra(count):
    """A bright sloping baseline with a ripple whose spacing depends on the grain."""
    labels = torch.randint(0, CLASSES, (count,))
    axis = torch.linspace(0, 1, POINTS)
    slope = torch.randn(count, 1)
    phase = 2 * math.pi * torch.rand(count, 1)
    spacing = 3.0 + 2.0 * labels.unsqueeze(1)
    ripple = torch.sin(2 * math.pi * spacing * axis + phase)
    spectra = 6.0 + slope * (axis - 0.5) + 0.8 * ripple + 0.3 * torch.randn(count, POINTS)
    return spectra.unsqueeze(1), labels


class SpectrumNet(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, channels, 9, stride=2, padding=4, bias=False),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
            nn.Conv1d(channels, 2 * channels, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm1d(2 * channels),
            nn.ReLU(),
        )
        self.classify = nn.Linear(2 * channels, CLASSES)

    def forward(self, spectra):
        return self.classify(self.features(spectra).mean(dim=2))


class WeightAverage:
    """A second copy of the network that follows the trained one slowly."""

    def __init__(self, model, decay=DECAY):
        self.network = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.network.parameters(), model.parameters()):
            slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)


def batches(spectra, labels):
    order = torch.randperm(len(labels))
    for index in order.split(BATCH):
        yield spectra[index], labels[index]


def train_epoch(model, average, optimizer, spectra, labels):
    model.train()
    total = 0.0
    for inputs, targets in batches(spectra, labels):
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        total += loss.item() * len(targets)
    return total / len(labels)


@torch.no_grad()
def accuracy(model, spectra, labels):
    model.eval()
    return (model(spectra).argmax(dim=1) == labels).float().mean().item()


train_spectra, train_labels = make_spectra(TRAIN)
test_spectra, test_labels = make_spectra(TEST)

model = SpectrumNet()
average = WeightAverage(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

for epoch in range(EPOCHS):
    loss = train_epoch(model, average, optimizer, train_spectra, train_labels)
    schedule.step()
    print(f"epoch {epoch:2d}  loss {loss:.4f}")

last_accuracy = accuracy(model, test_spectra, test_labels)
averaged_accuracy = accuracy(average.network, test_spectra, test_labels)
print(f"last weights {last_accuracy:.3f}, averaged weights {averaged_accuracy:.3f}")
