"""Store demand forecaster: first job trains for a while and is preempted, the second job picks up its checkpoint."""
import io
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    window: int = 24
    horizon: int = 6
    hidden: int = 48
    batch_size: int = 64
    lr: float = 2e-3
    weight_decay: float = 1e-4
    first_job_steps: int = 60
    second_job_steps: int = 240
    seed: int = 17


def make_series(n_stores, length, generator):
    t = torch.arange(length).float()
    phase = torch.rand(n_stores, 1, generator=generator) * 2 * math.pi
    level = 1.0 + torch.rand(n_stores, 1, generator=generator)
    weekly = 0.8 * torch.sin(2 * math.pi * t / 7 + phase)
    monthly = 0.5 * torch.cos(2 * math.pi * t / 30 + 2 * phase)
    noise = 0.1 * torch.randn(n_stores, length, generator=generator)
    return level + weekly + monthly + noise


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.GRU(1, cfg.hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.horizon))

    def forward(self, history):
        base = history.mean(dim=1, keepdim=True)
        out, _ = self.encoder((history - base).unsqueeze(-1))
        return base + self.head(out[:, -1])


class Trainer:
    def __init__(self, cfg, series, checkpoint=None):
        self.cfg = cfg
        self.train_part, self.val_part = series[:, :200], series[:, 200:]
        self.generator = torch.Generator().manual_seed(cfg.seed)
        self.model = Forecaster(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.step = 0
        if checkpoint is not None:
            self.resume(checkpoint)

    def save(self):
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}, buffer)
        buffer.seek(0)
        return buffer

    def resume(self, buffer):
        checkpoint = torch.load(buffer, weights_only=True)
        self.model.load_state_dict(checkpoint["model"], assign=True)
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.step = checkpoint["step"]

    def batch(self, part):
        span = self.cfg.window + self.cfg.horizon
        rows = torch.randint(part.size(0), (self.cfg.batch_size,), generator=self.generator)
        starts = torch.randint(part.size(1) - span, (self.cfg.batch_size,), generator=self.generator)
        chunk = part[rows.unsqueeze(1), starts.unsqueeze(1) + torch.arange(span)]
        return chunk[:, : self.cfg.window], chunk[:, self.cfg.window :]

    def fit(self, n_steps):
        self.model.train()
        for _ in range(n_steps):
            history, future = self.batch(self.train_part)
            loss = F.smooth_l1_loss(self.model(history), future)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.step += 1

    @torch.no_grad()
    def evaluate(self, n_batches=10):
        self.model.eval()
        errors = []
        for _ in range(n_batches):
            history, future = self.batch(self.val_part)
            errors.append((self.model(history) - future).abs().mean().item())
        return sum(errors) / len(errors)


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(cfg.seed)
    series = make_series(80, 300, torch.Generator().manual_seed(cfg.seed))
    first = Trainer(cfg, series)
    first.fit(cfg.first_job_steps)
    print(f"job 1  step {first.step}  val MAE {first.evaluate():.3f}")
    second = Trainer(cfg, series, checkpoint=first.save())
    second.fit(cfg.second_job_steps)
    final_mae = second.evaluate()
    print(f"job 2  step {second.step}  val MAE {final_mae:.3f}")
