"""Bird-call toy task: learned filterbank, log energies, small classifier.

Translated layer by layer from a Keras model; as there, a layer makes its kernel when it first sees an input, so that
window length and channel count need not be passed around.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

RATE = 4000
SAMPLES = 800
SPECIES = 6
WINDOW_MS = 16


def calls(n):
    """A pulsed tone per clip; species differ in carrier pitch and share the pulse rates."""
    t = torch.arange(SAMPLES) / RATE
    species = torch.randint(SPECIES, (n,))
    pitch = 500.0 + 170.0 * species + 25.0 * torch.randn(n)
    pulse = 12.0 + 10.0 * torch.rand(n)
    phase = 2 * math.pi * torch.rand(n, 2)
    envelope = 0.5 + 0.5 * torch.sin(2 * math.pi * pulse[:, None] * t + phase[:, :1])
    tone = torch.sin(2 * math.pi * pitch[:, None] * t + phase[:, 1:])
    clip = envelope * tone * (0.3 + torch.rand(n, 1)) + 0.25 * torch.randn(n, SAMPLES)
    return clip.unsqueeze(1), species


class BuiltLayer(nn.Module):
    """Base of the ported layers: `build` runs once, with the shape of the first input."""

    built = False

    def build(self, shape):
        raise NotImplementedError

    def call(self, x):
        raise NotImplementedError

    def forward(self, x):
        if not self.built:
            self.build(x.shape)
            self.built = True
        return self.call(x)


class Filterbank(BuiltLayer):
    """Strided convolution over the raw signal, squared and averaged over time: one log energy per filter."""

    def __init__(self, filters, rate):
        super().__init__()
        self.filters = filters
        self.width = int(rate * WINDOW_MS / 1000)

    def build(self, shape):
        kernel = torch.randn(self.filters, shape[1], self.width) / math.sqrt(self.width * shape[1])
        self.kernel = nn.Parameter(kernel)
        self.register_buffer("taper", torch.hann_window(self.width, periodic=False))

    def call(self, x):
        response = F.conv1d(x, self.kernel * self.taper, stride=4)
        return torch.log(response.pow(2).mean(dim=2) + 1e-4)


class CallClassifier(nn.Module):
    def __init__(self, filters=5, hidden=32):
        super().__init__()
        self.bank = Filterbank(filters, RATE)
        self.norm = nn.LayerNorm(filters)
        self.hidden = nn.Linear(filters, hidden)
        self.out = nn.Linear(hidden, SPECIES)

    def forward(self, x):
        return self.out(F.gelu(self.hidden(self.norm(self.bank(x)))))


train_x, train_y = calls(1200)
test_x, test_y = calls(600)

model = CallClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(14):
    order = torch.randperm(len(train_x))
    total = 0.0
    for idx in order.split(60):
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    history.append(total / len(order))
print("train loss by epoch:", " ".join(f"{v:.3f}" for v in history))

with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
