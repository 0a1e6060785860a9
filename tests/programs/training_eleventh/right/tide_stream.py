"""Water level at a harbour, streamed: a GRU follows several gauges through the year in short chunks."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
GAUGES, HOURS, CHUNK, ACCUMULATE = 16, 24 * 117, 24, 4
TRAIN_HOURS = 24 * 97


def make_levels():
    """Two tides with slow phase drift and a storm surge that answers to past wind (a leaky memory of 60 hours)."""
    t = torch.arange(HOURS, dtype=torch.float32)
    phase = 2 * math.pi * torch.rand(GAUGES, 2)
    tide = torch.sin(2 * math.pi * t / 12.42 + phase[:, :1]) + 0.4 * torch.sin(2 * math.pi * t / 24 + phase[:, 1:])
    wind = torch.zeros(GAUGES, HOURS)
    surge = torch.zeros(GAUGES, HOURS)
    for k in range(1, HOURS):
        wind[:, k] = 0.8 * wind[:, k - 1] + 0.6 * torch.randn(GAUGES)
        surge[:, k] = (1 - 1 / 60) * surge[:, k - 1] + 0.06 * wind[:, k - 1].clamp(min=0).square() - 0.02
    level = tide + surge + 0.05 * torch.randn(GAUGES, HOURS)
    known = level[:, :TRAIN_HOURS]
    return (level - known.mean()) / known.std(), wind


class HarbourModel(nn.Module):
    """Predicts the change of the level in the next 6 hours from the wind and the level so far."""

    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        hidden, state = self.rnn(x, state)
        return self.out(hidden).squeeze(-1), state


def chunks(first, last):
    for start in range(first, last - CHUNK - 6 + 1, CHUNK):
        now = slice(start, start + CHUNK)
        ahead = slice(start + 6, start + CHUNK + 6)
        x = torch.stack([level[:, now], wind[:, now]], -1).transpose(0, 1)
        yield x, (level[:, ahead] - level[:, now]).T


level, wind = make_levels()
model = HarbourModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


@torch.no_grad()
def validate(state):
    """Goes on where training stopped in time, so the state is that of the last training hour."""
    errors = []
    for x, y in chunks(TRAIN_HOURS, HOURS):
        prediction, state = model(x, state)
        errors.append((prediction - y).abs().mean())
    return torch.stack(errors).mean().item()


@torch.no_grad()
def follow(first, last):
    state = None
    for x, _ in chunks(first, last + 6):
        _, state = model(x, state)
    return state


for epoch in range(9):
    state, total, count = None, 0.0, 0
    optimizer.zero_grad()
    for x, y in chunks(0, TRAIN_HOURS):
        prediction, state = model(x, state)
        loss = F.mse_loss(prediction, y)
        (loss / ACCUMULATE).backward()
        state = state.detach()
        total, count = total + loss.item(), count + 1
        if count % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    if epoch % 4 == 0:
        carried = validate(follow(0, TRAIN_HOURS))
        print(
            f"epoch {epoch + 1:2d}  loss {total / count:.4f}  later weeks MAE {carried:.4f}  "
            f"lr {scheduler.get_last_lr()[0]:.4f}"
        )
naive = torch.stack([y.abs().mean() for _, y in chunks(TRAIN_HOURS, HOURS)]).mean().item()
print(f"MAE of no change {naive:.4f}  MAE with an empty state {validate(None):.4f}")
