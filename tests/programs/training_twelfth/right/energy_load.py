"""Electric load forecasting with a GRU; every parameter is updated as soon as its gradient is complete."""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    n_meters: int = 24
    length: int = 260
    context: int = 36
    horizon: int = 6
    hidden: int = 40
    epochs: int = 8
    batch_size: int = 64
    lr: float = 6e-3
    gamma: float = 0.75
    clip: float = 0.5
    seed: int = 17


def simulate(cfg):
    t = torch.arange(cfg.length).float()
    phase, amp = torch.rand(cfg.n_meters, 1) * 2 * math.pi, 0.5 + torch.rand(cfg.n_meters, 2)
    noise = torch.zeros(cfg.n_meters, cfg.length)
    for k in range(1, cfg.length):
        noise[:, k] = 0.8 * noise[:, k - 1] + 0.12 * torch.randn(cfg.n_meters)
    daily = amp[:, :1] * torch.sin(2 * math.pi * t / 24 + phase)
    return daily + 0.5 * amp[:, 1:] * torch.cos(4 * math.pi * t / 24 + 2 * phase) + noise


class Windows(Dataset):
    def __init__(self, load, cfg, start, stop, stride):
        self.cfg = cfg
        self.data = load[:, start:stop].unfold(1, cfg.context + cfg.horizon, stride).flatten(0, 1)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i, : self.cfg.context], self.data[i, self.cfg.context:]


class LoadForecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gru = nn.GRU(1, cfg.hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(cfg.hidden, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, cfg.horizon))

    def forward(self, x):
        level = x.mean(1, keepdim=True)
        _, h = self.gru((x - level).unsqueeze(-1))
        return self.head(h[-1]) + level


class FusedUpdates:
    """One optimizer for each parameter, run inside the backward pass, so that no full set of gradients is held."""

    def __init__(self, model, cfg):
        self.cfg = cfg
        self.optimizers = {p: torch.optim.Adam([p], lr=cfg.lr) for p in model.parameters()}
        self.schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, cfg.gamma) for o in self.optimizers.values()]
        for p in self.optimizers:
            p.register_post_accumulate_grad_hook(self.update)

    def update(self, p):
        nn.utils.clip_grad_norm_([p], self.cfg.clip)  # clipped for each tensor by itself
        self.optimizers[p].step()
        p.grad = None

    def end_epoch(self):
        for s in self.schedulers:
            s.step()

    @property
    def lr(self):
        return self.schedulers[0].get_last_lr()[0]


def evaluate(model, data):
    x, y = data.data[:, : data.cfg.context], data.data[:, data.cfg.context:]
    with torch.inference_mode():
        return (model(x) - y).abs().mean().item(), (x[:, -1:] - y).abs().mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    load = simulate(cfg)
    train, test = Windows(load, cfg, 0, 190, 3), Windows(load, cfg, 190, cfg.length, 2)
    model = LoadForecaster(cfg)
    updates = FusedUpdates(model, cfg)
    print("untrained MAE %.3f, last value as forecast %.3f" % evaluate(model, test))
    for epoch in range(cfg.epochs):
        total = 0.0
        for x, y in DataLoader(train, cfg.batch_size, shuffle=True):
            loss = nn.functional.huber_loss(model(x), y)
            loss.backward()
            total += loss.item() * len(x)
        print(f"epoch {epoch + 1}  lr {updates.lr:.5f}  loss {total / len(train):.4f}  test MAE {evaluate(model, test)[0]:.3f}")
        updates.end_epoch()


if __name__ == "__main__":
    main()
