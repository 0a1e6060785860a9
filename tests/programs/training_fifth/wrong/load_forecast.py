"""Day-ahead electricity load: a dilated conv net on hourly history, trained with a home-made Lion optimizer."""
import math

import torch
import torch.nn as nn
from torch.optim import Optimizer

torch.set_num_threads(1)
torch.manual_seed(17)


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        if lr <= 0:
            raise ValueError(f"invalid learning rate {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        lr, (beta1, beta2) = self.defaults["lr"], self.defaults["betas"]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                avg = state["exp_avg"]
                p.mul_(1 - lr * group["weight_decay"])
                update = avg.mul(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-lr)
                avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss


class Forecaster(nn.Module):
    def __init__(self, history, horizon):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 5, stride=2), nn.GELU(),
            nn.Conv1d(16, 16, 3, dilation=2), nn.GELU(), nn.Flatten(),
        )
        with torch.no_grad():
            width = self.conv(torch.zeros(1, 1, history)).shape[1]
        self.head = nn.Linear(width, horizon)

    def forward(self, x):
        return self.head(self.conv(x[:, None]))


def load_series(hours):
    t = torch.arange(hours).float()
    day = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 1)
    week = 0.5 * torch.sin(2 * math.pi * t / 168)
    return day * (1 + week) + week + 0.03 * torch.randn(hours)


HISTORY, HORIZON, STEPS = 72, 24, 320
series = load_series(2400)
windows = series.unfold(0, HISTORY + HORIZON, 1)
split = int(0.8 * len(windows))
train, test = windows[:split], windows[split + HORIZON:]

model = Forecaster(HISTORY, HORIZON)
optimizer = Lion(model.parameters(), lr=3e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=STEPS, pct_start=0.1,
                                               cycle_momentum=False)

history = []
for step in range(STEPS):
    batch = train[torch.randint(len(train), (32,))]
    loss = nn.functional.mse_loss(model(batch[:, :HISTORY]), batch[:, HISTORY:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    history.append(loss.item())
    if (step + 1) % 80 == 0:
        lr = optimizer.param_groups[0]["lr"]
        print(f"step {step + 1:4d}  lr {lr:.6f}  mse {sum(history[-80:]) / 80:.5f}")

model.eval()
with torch.no_grad():
    mse = nn.functional.mse_loss(model(test[:, :HISTORY]), test[:, HISTORY:]).item()
print(f"test mse {mse:.5f}  (last training mse {sum(history[-20:]) / 20:.5f})")
