"""Day-ahead demand from the last day: a GRU, pretrained on many regions, is adapted to a new region in two phases."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAST, AHEAD = 24, 12
PRETRAIN_STEPS = 25
ADAPT_STEPS = 100
UNFREEZE_AT = 25


def demand(hours, peak, swing, generator):
    """Hourly demand with a daily and a weekly rhythm and a slowly wandering level."""
    time = torch.arange(hours).float()
    daily = swing * torch.sin(2 * math.pi * (time - peak) / 24)
    weekly = 0.4 * torch.cos(2 * math.pi * time / 168)
    level = torch.cumsum(0.03 * torch.randn(hours, generator=generator), 0)
    return daily + weekly + level + 0.1 * torch.randn(hours, generator=generator)


def windows(series):
    frames = series.unfold(0, PAST + AHEAD, 1)
    return frames[:, :PAST], frames[:, PAST:]


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.encoder = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, AHEAD))

    def forward(self, past):
        last = past[:, -1:]
        _, state = self.encoder((past - last).unsqueeze(-1))
        return last + self.head(state[-1])


def train_step(model, optimizer, past, ahead, generator):
    rows = torch.randint(0, len(past), (32,), generator=generator)
    loss = F.smooth_l1_loss(model(past[rows]), ahead[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def pretrain(model, generator):
    regions = [windows(demand(300, peak, 1.0, generator)) for peak in range(0, 24, 4)]
    past = torch.cat([p for p, _ in regions])
    ahead = torch.cat([a for _, a in regions])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(PRETRAIN_STEPS):
        loss = train_step(model, optimizer, past, ahead, generator)
    print(f"pretrained, loss {loss:.4f}")


@torch.no_grad()
def mean_absolute_error(model, past, ahead):
    model.eval()
    error = (model(past) - ahead).abs().mean().item()
    model.train()
    return error


def adapt(model, past, ahead, valid, generator, lr=2e-2):
    """First the head alone, then the whole net; the rate falls along a cosine over all steps."""
    model.encoder.requires_grad_(False)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=ADAPT_STEPS)
    history = []
    for step in range(ADAPT_STEPS):
        if step == UNFREEZE_AT:
            model.encoder.requires_grad_(True)
            optimizer = torch.optim.Adam(model.parameters(), lr=scheduler.get_last_lr()[0])
        loss = train_step(model, optimizer, past, ahead, generator)
        scheduler.step()
        history.append(loss)
        if (step + 1) % 25 == 0:
            rate = scheduler.get_last_lr()[0]
            error = mean_absolute_error(model, *valid)
            print(f"step {step + 1:4d}  lr {rate:.5f}  loss {sum(history[-25:]) / 25:.4f}  valid mae {error:.4f}")
    return optimizer, scheduler, history


def main():
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(12)
    model = Forecaster()
    pretrain(model, generator)

    series = demand(900, 9, 1.6, generator)
    past, ahead = windows(series[:700])
    valid = windows(series[700:])
    print(f"new region, before: valid mae {mean_absolute_error(model, *valid):.4f}")
    optimizer, scheduler, history = adapt(model, past, ahead, valid, generator)
    final = mean_absolute_error(model, *valid)
    print(f"new region, after:  valid mae {final:.4f}")
    return model, optimizer, scheduler, history, final


if __name__ == "__main__":
    model, optimizer, scheduler, history, final_error = main()
