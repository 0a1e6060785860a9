"""Forecast of a river gauge with a residual net; the averaged weights are swapped in for scoring."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

WINDOW = 16


def make_series(count, generator):
    noise = torch.randn(count, generator=generator)
    level = torch.zeros(count)
    for t in range(2, count):
        level[t] = 1.4 * torch.sin(1.6 * level[t - 1]) - 0.4 * level[t - 2] + 0.25 * noise[t]
    windows = level.unfold(0, WINDOW + 1, 1)
    return windows[:, :-1].clone(), windows[:, -1:].clone()


class GatedBlock(nn.Module):
    """Residual block with a gate that starts closed (ReZero)."""

    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gate * self.net(x)


class GaugeNet(nn.Module):
    def __init__(self, width=32, blocks=2):
        super().__init__()
        self.inlet = nn.Linear(WINDOW, width)
        self.blocks = nn.Sequential(*[GatedBlock(width) for _ in range(blocks)])
        self.outlet = nn.Linear(width, 1)

    def forward(self, x):
        return self.outlet(self.blocks(self.inlet(x)))


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {name: p.data.clone() for name, p in model.named_parameters()}
        self.backup = {}

    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1.0 - self.decay) * p.data

    def apply_shadow(self):
        for name, p in self.model.named_parameters():
            self.backup[name] = p.data
            p.data = self.shadow[name]

    def restore(self):
        for name, p in self.model.named_parameters():
            p.data = self.backup[name]
        self.backup = {}


@torch.no_grad()
def score(model, data):
    return F.mse_loss(model(data[0]), data[1]).item()


def train(steps=240, every=20):
    generator = torch.Generator().manual_seed(41)
    x, y = make_series(1800, generator)
    valid = (x[1400:], y[1400:])
    x, y = x[:1380], y[:1380]

    model = GaugeNet()
    optimizer = torch.optim.NAdam(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=120, gamma=0.3)
    ema = EMA(model, decay=0.97)
    best, best_state = float("inf"), None

    for step in range(1, steps + 1):
        idx = torch.randint(0, len(x), (48,), generator=generator)
        loss = F.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update()
        if step % every == 0:
            raw = score(model, valid)
            ema.apply_shadow()
            averaged = score(model, valid)
            if averaged < best:
                best, best_state = averaged, copy.deepcopy(model.state_dict())
            ema.restore()
            if step % 60 == 0:
                print(f"step {step:4d}  batch {loss.item():.4f}  valid {raw:.4f}  averaged {averaged:.4f}")

    final = GaugeNet()
    final.load_state_dict(best_state)
    print(f"best averaged {best:.4f}  reloaded {score(final, valid):.4f}")
    return model, ema, final, best


if __name__ == "__main__":
    torch.manual_seed(16)
    model, ema, final, best = train()
