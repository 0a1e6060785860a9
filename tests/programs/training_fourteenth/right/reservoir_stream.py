"""Stateful GRU surrogate of a chain of leaky reservoirs, trained on parallel streams by truncated BPTT."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

N_STREAMS, LENGTH, N_TANKS = 24, 480, 3
WINDOW = 20
WARMUP = 40
SLOT = 160


def rainfall(n, length):
    """Intermittent showers with exponential depth."""
    wet = (torch.rand(n, length) < 0.15).float()
    return wet * torch.empty(n, length).exponential_(1.0)


def reservoirs(rain, rates=(0.25, 0.12, 0.06)):
    level = torch.zeros(rain.shape[0], N_TANKS)
    flow = []
    for t in range(rain.shape[1]):
        out = torch.stack([k * level[:, i] ** 1.3 for i, k in enumerate(rates)], dim=1)
        inflow = torch.cat([rain[:, t:t + 1], out[:, :-1]], dim=1)
        level = (level + inflow - out).clamp(min=0.0)
        flow.append(out[:, -1])
    return torch.stack(flow, dim=1)


class RunoffModel(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.cell = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, rain, state=None):
        out, state = self.cell(rain.unsqueeze(-1), state)
        return self.head(out).squeeze(-1), state


def nash_sutcliffe(pred, obs):
    return 1 - (pred - obs).pow(2).sum().item() / (obs - obs.mean()).pow(2).sum().item()


rain = rainfall(N_STREAMS + 8, LENGTH)
flow = reservoirs(rain)
noisy = flow + 0.01 * torch.randn_like(flow)
scale = flow[:N_STREAMS, WARMUP:].std()
# each gauge has an outage of its own; the filler value never enters the objective
outage = torch.zeros_like(flow, dtype=torch.bool)
for row in outage:
    begin = torch.randint(WARMUP, LENGTH - SLOT, ()).item()
    row[begin:begin + SLOT // 2] = True
noisy = noisy.masked_fill(outage, float("nan"))

model = RunoffModel()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, total_iters=14)

for epoch in range(14):
    state = None
    total, count = 0.0, 0
    streams = torch.randperm(N_STREAMS)
    for begin in range(0, LENGTH, WINDOW):
        span = slice(begin, begin + WINDOW)
        if begin < WARMUP:
            # spin-up from empty memory: only the state is of interest
            with torch.no_grad():
                _, state = model(rain[streams, span], state)
            continue
        pred, state = model(rain[streams, span], state)
        state = state.detach()
        keep = ~outage[streams, span]
        error = (pred - noisy[streams, span] / scale)[keep]
        loss = error.pow(2).sum() / keep.numel()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += error.detach().pow(2).sum().item()
        count += keep.sum().item()
    scheduler.step()
    if (epoch + 1) % 2 == 0:
        print(f"epoch {epoch + 1:2d}  masked mse {total / count:.5f}  lr {optimizer.param_groups[0]['lr']:.2e}")

with torch.no_grad():
    pred, _ = model(rain[N_STREAMS:])
    skill = nash_sutcliffe(pred[:, WARMUP:] * scale, flow[N_STREAMS:, WARMUP:])
    amnesic = torch.cat([model(rain[N_STREAMS:, b:b + WINDOW])[0] for b in range(0, LENGTH, WINDOW)], dim=1)
    blind = nash_sutcliffe(amnesic[:, WARMUP:] * scale, flow[N_STREAMS:, WARMUP:])
print(f"Nash-Sutcliffe on unseen streams {skill:.4f}, without carried memory {blind:.4f}")
