"""Sorts synthetic absorption spectra into minerals, in half precision with a scaled loss and clipped gradients."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BANDS = 64
MINERALS = 6
DEVICE = "cpu"


def make_spectra(n, peaks, widths):
    labels = torch.randint(0, MINERALS, (n,))
    grid = torch.linspace(0, 1, BANDS)
    shift = 0.01 * torch.randn(n, 1)
    depth = 0.6 + 0.4 * torch.rand(n, 1)
    dips = torch.zeros(n, BANDS)
    for k in range(peaks.shape[1]):
        centre = peaks[labels, k].unsqueeze(1) + shift
        dips += depth * torch.exp(-((grid - centre) ** 2) / (2 * widths[labels, k].unsqueeze(1) ** 2))
    return 1.0 - dips + 0.1 * torch.randn(n, BANDS), labels


class SpectrumNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm = nn.LayerNorm(BANDS)
        self.body = nn.Sequential(nn.Linear(BANDS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, MINERALS)

    def forward(self, x):
        return self.out(self.body(self.norm(x)))


def warmup_cosine(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def train_epoch(model, data, optimizer, schedule, scaler, batch_size, max_norm):
    model.train()
    inputs, labels = data
    total, seen = 0.0, 0
    for rows in torch.randperm(len(inputs)).split(batch_size):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=DEVICE, dtype=torch.float16):
            logits = model(inputs[rows])
            loss = F.cross_entropy(logits, labels[rows])
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        total += loss.item() * len(rows)
        seen += len(rows)
    return total / seen


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    inputs, labels = data
    with torch.autocast(device_type=DEVICE, dtype=torch.float16):
        guess = model(inputs).argmax(dim=1)
    return (guess == labels).float().mean().item()


def main():
    torch.manual_seed(5)
    peaks = 0.1 + 0.8 * torch.rand(MINERALS, 3)
    widths = 0.02 + 0.04 * torch.rand(MINERALS, 3)
    train_set = make_spectra(1024, peaks, widths)
    valid_set = make_spectra(512, peaks, widths)
    epochs, batch_size = 6, 64
    model = SpectrumNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = warmup_cosine(optimizer, warmup=8, total=epochs * (1024 // batch_size))
    scaler = torch.amp.GradScaler(DEVICE)
    losses = []
    for epoch in range(epochs):
        losses.append(train_epoch(model, train_set, optimizer, schedule, scaler, batch_size, max_norm=1.0))
        print(f"epoch {epoch}  loss {losses[-1]:.4f}  valid accuracy {accuracy(model, valid_set):.3f}")
    return model, losses, accuracy(model, valid_set)


if __name__ == "__main__":
    model, losses, final_accuracy = main()
