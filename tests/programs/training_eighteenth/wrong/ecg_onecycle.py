"""Arrhythmia detection on single-lead ECG windows (master thesis, chapter 4 experiment).

A small residual 1-D CNN is trained with the one-cycle policy of Smith & Topin.
"""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)

LENGTH = 128
CLASSES = ["normal", "premature", "atrial"]
EPOCHS = 7
BATCH = 50
MAX_LR = 0.1


def beat(t, center, width, height):
    return height * torch.exp(-((t - center) ** 2) / (2 * width ** 2))


def synth_window(kind):
    t = torch.linspace(0, 2, LENGTH)
    phase = 0.2 + 0.2 * torch.rand(1).item()
    beats = [phase, phase + 0.7, phase + 1.4]
    if kind == 1:
        beats[1] -= 0.2 + 0.1 * torch.rand(1).item()
    signal = torch.zeros(LENGTH)
    for b in beats:
        signal += beat(t, b, 0.02, 1.0) + beat(t, b + 0.2, 0.05, 0.25)
        if kind != 2:
            signal += beat(t, b - 0.13, 0.03, 0.2)
    if kind == 2:
        signal += 0.08 * torch.sin(2 * math.pi * 6.0 * t + 6.28 * torch.rand(1).item())
    drift = 0.2 * torch.sin(2 * math.pi * 0.4 * t + 6.28 * torch.rand(1).item())
    return signal + drift + 0.12 * torch.randn(LENGTH)


def make_set(n):
    labels = torch.randint(0, len(CLASSES), (n,))
    windows = torch.stack([synth_window(k.item()) for k in labels]).unsqueeze(1)
    return TensorDataset(windows, labels)


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv1d(c_in, c_out, 7, stride=stride, padding=3, bias=False)
        self.bn1 = nn.BatchNorm1d(c_out)
        self.conv2 = nn.Conv1d(c_out, c_out, 5, padding=2, bias=False)
        self.bn2 = nn.BatchNorm1d(c_out)
        self.skip = nn.Conv1d(c_in, c_out, 1, stride=stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.skip(x))


def build_model():
    return nn.Sequential(
        Block(1, 8, 2),
        Block(8, 12, 2),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(48, len(CLASSES)),
    )


def evaluate(model, loader):
    model.eval()
    right, seen = 0, 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    return right / seen


train_loader = DataLoader(make_set(800), batch_size=BATCH, shuffle=True)
test_loader = DataLoader(make_set(300), batch_size=200)

model = build_model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=MAX_LR / 25, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=MAX_LR, epochs=EPOCHS, steps_per_epoch=len(train_loader), pct_start=0.3
)

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)
    scheduler.step()
    print(f"epoch {epoch + 1}/{EPOCHS}  loss {running / len(train_loader.dataset):.4f}  test acc {evaluate(model, test_loader):.3f}")
