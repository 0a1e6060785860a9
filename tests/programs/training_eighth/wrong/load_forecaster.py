"""Forecasting of a daily load curve: head first, then the whole recurrent model with a warm-up and cosine step size."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONTEXT, AHEAD = 48, 12


def load_curve(hours, gen):
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 0.6)
    weekly = 0.5 * torch.sign(torch.sin(2 * math.pi * t / 168))
    noise = torch.zeros(hours)
    shocks = 0.12 * torch.randn(hours, generator=gen)
    for k in range(1, hours):
        noise[k] = 0.9 * noise[k - 1] + shocks[k]
    return daily + weekly + noise


def windows(series, stride):
    full = series.unfold(0, CONTEXT + AHEAD, stride)
    return full[:, :CONTEXT].unsqueeze(-1), full[:, CONTEXT:]


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.embed = nn.Linear(1, 8)
        self.rnn = nn.GRU(8, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 48), nn.ReLU(), nn.Linear(48, AHEAD))

    def backbone(self):
        return list(self.embed.parameters()) + list(self.rnn.parameters())

    def forward(self, x):
        _, h = self.rnn(torch.tanh(self.embed(x)))
        return x[:, -1] + self.head(h[0])


def warm_cosine(optimizer, warm, total):
    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Runner:
    def __init__(self, model, lr, total, warm, unfreeze_at):
        self.model = model
        self.lr = lr
        self.unfreeze_at = unfreeze_at
        for p in model.backbone():
            p.requires_grad_(False)
        self.optimizer = self.build_optimizer()
        self.scheduler = warm_cosine(self.optimizer, warm, total)
        self.count = 0
        self.rates = []

    def build_optimizer(self):
        params = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.Adam(params, lr=self.lr)

    def unfreeze(self):
        for p in self.model.backbone():
            p.requires_grad_(True)
        self.optimizer = self.build_optimizer()

    def step(self, x, y):
        if self.count == self.unfreeze_at:
            self.unfreeze()
        loss = F.l1_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.count += 1
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        return loss.item()


def main(epochs=8):
    torch.manual_seed(13)
    gen = torch.Generator().manual_seed(13)
    series = load_curve(2400, gen)
    x, y = windows(series[:2000], 4)
    xt, yt = windows(series[2000:], 4)
    per_epoch = math.ceil(len(x) / 32)
    model = Forecaster()
    runner = Runner(model, lr=1e-2, total=epochs * per_epoch, warm=per_epoch // 2, unfreeze_at=per_epoch)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(32):
            total += runner.step(x[idx], y[idx])
        print(f"epoch {epoch} mae {total / per_epoch:.3f} lr {runner.scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    with torch.no_grad():
        err = F.l1_loss(model(xt), yt).item()
    print(f"test mae {err:.3f}")
    return runner, err


if __name__ == "__main__":
    runner, err = main()
