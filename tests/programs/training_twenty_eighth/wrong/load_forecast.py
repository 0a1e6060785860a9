"""Day-ahead forecast of an electricity load curve with an LSTM encoder and a direct multi-step head."""
import math

import torch
import torch.nn.functional as F
from torch import nn

PAST, AHEAD = 48, 24


def load_curve(hours, generator):
    time = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * time / 24)
    weekly = 0.4 * torch.sin(2 * math.pi * time / 168)
    drift = 0.02 * torch.randn(hours, generator=generator).cumsum(0)
    return daily + weekly + drift + 0.1 * torch.randn(hours, generator=generator)


def windows(curve, stride):
    pieces = curve.unfold(0, PAST + AHEAD, stride)
    return pieces[:, :PAST].unsqueeze(-1).contiguous(), pieces[:, PAST:].contiguous()


class DayAhead(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.encoder = nn.LSTM(1, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Sequential(nn.Linear(hidden, 64), nn.ReLU(), nn.Linear(64, AHEAD))

    def forward(self, past):
        level = past[:, -24:].mean(dim=1)
        states, _ = self.encoder(past - level.unsqueeze(1))
        return level + self.head(self.dropout(states[:, -1]))


class Curve:
    """Validation errors of a run; says when the rate has to come down and when to stop."""

    def __init__(self, patience, limit):
        self.patience = patience
        self.limit = limit
        self.errors = []
        self.best_epoch = 0

    def add(self, error):
        self.errors.append(error)
        if error <= self.errors[self.best_epoch]:
            self.best_epoch = len(self.errors) - 1

    @property
    def stale(self):
        return len(self.errors) - 1 - self.best_epoch

    def should_lower(self):
        return self.stale > 0 and self.stale % self.patience == 0

    def should_stop(self):
        return self.stale >= self.limit


def train_epoch(model, optimizer, past, ahead, batch_size):
    model.train()
    total = 0.0
    for chosen in torch.randperm(len(past)).split(batch_size):
        loss = F.smooth_l1_loss(model(past[chosen]), ahead[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(chosen)
    return total / len(past)


def validate(model, past, ahead, batch_size=64):
    model.eval()
    total = torch.zeros(())
    for x, y in zip(past.split(batch_size), ahead.split(batch_size)):
        total = total + (model(x) - y).abs().sum()
    return total / ahead.numel()


def main(epochs=25):
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(31)
    curve = load_curve(24 * 120, generator)
    train_past, train_ahead = windows(curve[: 24 * 90], stride=7)
    valid_past, valid_ahead = windows(curve[24 * 90 :], stride=4)
    model = DayAhead()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    progress = Curve(patience=4, limit=12)
    for epoch in range(epochs):
        loss = train_epoch(model, optimizer, train_past, train_ahead, 32)
        error = validate(model, valid_past, valid_ahead)
        progress.add(error)
        if progress.should_lower():
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  validation error {error.item():.4f}")
        if progress.should_stop():
            break
    best = progress.errors[progress.best_epoch].item()
    print(f"best error {best:.4f} in epoch {progress.best_epoch + 1}")
    return model, progress


if __name__ == "__main__":
    model, progress = main()
