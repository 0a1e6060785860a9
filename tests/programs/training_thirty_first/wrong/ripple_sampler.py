"""Regress wave-tank ripples from sensor readings, drawing the hard samples more often."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)

SAMPLES = 768
SENSORS = 12
OUTPUTS = 4
BATCH = 48
EPOCHS = 12
STEPS_PER_EPOCH = 12
LEARNING_RATE = 3e-3


def wave_tank(count):
    """Sensor readings and the four wave heights behind them; a tenth of the samples are choppy."""
    basis = torch.randn(OUTPUTS, SENSORS) / math.sqrt(OUTPUTS)
    heights = torch.randn(count, OUTPUTS)
    choppy = torch.rand(count) < 0.1
    heights[choppy] *= 2.5
    readings = torch.tanh(heights @ basis) + 0.02 * torch.randn(count, SENSORS)
    return readings, heights


class RippleNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(SENSORS, width), nn.ReLU(),
            nn.Dropout(0.05),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, OUTPUTS),
        )

    def forward(self, readings):
        return self.layers(readings)


class DifficultySampler:
    """Draws indices in proportion to a running score of each sample's loss."""

    def __init__(self, size, batch, memory=0.5, floor=0.02):
        self.scores = torch.ones(size)
        self.batch = batch
        self.memory = memory
        self.floor = floor

    def draw(self):
        weights = self.scores.clamp_min(self.floor)
        return torch.multinomial(weights, self.batch, replacement=False)

    def update(self, index, losses):
        self.scores[index] = self.memory * self.scores[index] + (1 - self.memory) * losses


def sample_losses(model, readings, heights):
    return F.smooth_l1_loss(model(readings), heights, reduction="none").mean(1)


def rescore(model, sampler, readings, heights, chunk=256):
    """Go over the whole set once and renew the score of every sample."""
    model.eval()
    for index in torch.arange(len(readings)).split(chunk):
        losses = sample_losses(model, readings[index], heights[index])
        sampler.update(index, losses)
    model.train()


def train_epoch(model, optimizer, sampler, readings, heights):
    total = 0.0
    for _ in range(STEPS_PER_EPOCH):
        index = sampler.draw()
        loss = sample_losses(model, readings[index], heights[index]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / STEPS_PER_EPOCH


readings, heights = wave_tank(SAMPLES)
model = RippleNet()
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
sampler = DifficultySampler(SAMPLES, BATCH)

for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer, sampler, readings, heights)
    rescore(model, sampler, readings, heights)
    mean_score = sampler.scores.mean().item()
    top_score = sampler.scores.max().item()
    print(f"epoch {epoch:2d}  loss {loss:.4f}  mean score {mean_score:.4f}  top score {top_score:.3f}")

model.eval()
with torch.no_grad():
    error = (model(readings) - heights).abs().mean().item()
print(f"mean absolute error {error:.4f}")
