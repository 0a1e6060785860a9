"""Hour-ahead forecast of the load of a substation, evaluated with an exponential moving average of the weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

HOURS = 2400
WINDOW = 48
BATCH = 64
STEPS = 300
EVAL_EVERY = 10


def make_load(hours):
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 0.7)
    weekly = 0.5 * torch.cos(2 * math.pi * t / 168)
    noise = torch.zeros(hours)
    for i in range(1, hours):
        noise[i] = 0.8 * noise[i - 1] + 0.1 * torch.randn(())
    return daily * (1 + 0.3 * weekly) + weekly + noise


def windows(series):
    frames = series.unfold(0, WINDOW + 1, 1)
    return frames[:, :WINDOW], frames[:, WINDOW]


class Forecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(WINDOW, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.encode(x)).squeeze(-1)


class WeightAverage:
    """Keeps a slow copy of the weights and can lend it to the model for an evaluation."""

    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.stash = {}

    @torch.no_grad()
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name].lerp_(p, 1.0 - self.decay)

    @torch.no_grad()
    def lend(self):
        for name, p in self.model.named_parameters():
            self.stash[name] = p.data
            p.copy_(self.shadow[name])

    @torch.no_grad()
    def give_back(self):
        for name, p in self.model.named_parameters():
            p.copy_(self.stash[name])
        self.stash = {}


@torch.no_grad()
def evaluate(model, inputs, targets):
    model.eval()
    error = F.mse_loss(model(inputs), targets)
    model.train()
    return error.item()


def train(model, train_set, test_set):
    inputs, targets = train_set
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    average = WeightAverage(model, decay=0.98)
    history = []
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(inputs), (BATCH,))
        loss = F.mse_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        if step % EVAL_EVERY == 0:
            average.lend()
            error = evaluate(model, *test_set)
            average.give_back()
            history.append((step, loss.item(), error))
    return average, history


def main():
    torch.manual_seed(11)
    series = make_load(HOURS)
    split = int(0.8 * HOURS)
    mean, std = series[:split].mean(), series[:split].std()
    series = (series - mean) / std
    train_set, test_set = windows(series[:split]), windows(series[split:])
    model = Forecaster()
    average, history = train(model, train_set, test_set)
    for step, loss, error in history[4::5]:
        print(f"step {step:4d}  train {loss:.4f}  test with averaged weights {error:.4f}")
    return model, average, history


if __name__ == "__main__":
    model, average, history = main()
