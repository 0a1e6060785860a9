"""Forecasts the level of a river six hours ahead from rain and level of the last two days.

After each epoch the forecasts of the validation season are kept, so that the hydrographs of
the epochs can be laid over each other when training is over.
"""
import torch
import torch.nn.functional as F
from torch import nn

HISTORY, HORIZON = 48, 6
EPOCHS, BATCH = 8, 64


def simulate_river(hours, generator):
    storm = (torch.rand(hours, generator=generator) < 0.04).float()
    rain = storm * torch.rand(hours, generator=generator) * 3.0
    level = torch.zeros(hours)
    soil = 0.0
    for t in range(1, hours):
        soil = 0.9 * soil + rain[t - 1].item()
        level[t] = 0.95 * level[t - 1] + 0.12 * soil
    return torch.stack([rain, level + 0.02 * torch.randn(hours, generator=generator)])


def cut_windows(series):
    blocks = series.unfold(1, HISTORY + HORIZON, 2).transpose(0, 1)
    past, future = blocks[:, :, :HISTORY], blocks[:, 1, HISTORY:]
    return past.contiguous(), future.contiguous()


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, channels)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(F.gelu(self.norm(self.conv(x))))


class LevelNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv1d(2, channels, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(channels, d) for d in (1, 2, 4)])
        self.head = nn.Linear(2 * channels, HORIZON)

    def forward(self, past):
        features = self.blocks(self.stem(past))
        summary = torch.cat([features[:, :, -1], features.mean(dim=2)], dim=1)
        return past[:, 1, -1:] + self.head(summary)


class SeasonLog:
    def __init__(self):
        self.losses = []
        self.curves = []

    def add(self, loss, curve):
        self.losses.append(loss)
        self.curves.append(curve)

    def spread(self, last=4):
        return torch.stack(self.curves[-last:]).std(dim=0).mean().item()


def train_epoch(model, optimizer, past, future):
    model.train()
    order = torch.randperm(len(past))
    total = 0.0
    for start in range(0, len(order), BATCH):
        pick = order[start:start + BATCH]
        loss = F.smooth_l1_loss(model(past[pick]), future[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(pick)
    return total / len(order)


def validate(model, past, future):
    model.eval()
    forecast = model(past)
    loss = F.smooth_l1_loss(forecast, future)
    return loss.item(), forecast[:, -1]


def main():
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(210)
    past, future = cut_windows(simulate_river(1000, generator))
    val_past, val_future = cut_windows(simulate_river(500, generator))
    model = LevelNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    log = SeasonLog()
    for epoch in range(EPOCHS):
        train_loss = train_epoch(model, optimizer, past, future)
        val_loss, curve = validate(model, val_past, val_future)
        log.add(val_loss, curve)
        print(f"epoch {epoch:2d}  train {train_loss:.5f}  validation {val_loss:.5f}")
    print(f"best epoch {min(range(EPOCHS), key=log.losses.__getitem__)}")
    print(f"spread of the last hydrographs {log.spread():.4f}")
    return model, log


if __name__ == "__main__":
    model, log = main()
