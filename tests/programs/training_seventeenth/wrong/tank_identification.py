"""System identification of a two-tank process with a GRU: predict the level response to a pump signal."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)

HORIZON = 40
WARMUP = 5
DT = 0.25


def tank_step(level, pump):
    upper, lower = level.unbind(-1)
    flow = 0.6 * upper.clamp(min=0).sqrt()
    drain = 0.45 * lower.clamp(min=0).sqrt()
    upper = upper + DT * (pump - flow)
    lower = lower + DT * (flow - drain)
    return torch.stack([upper, lower], dim=-1).clamp(0, 4)


def simulate(n):
    """Excite n plants with random step signals and log pump command and measured levels."""
    level = torch.rand(n, 2) * 2
    command = torch.rand(n) * 0.9
    pumps, levels = [], []
    for t in range(HORIZON):
        if t % 8 == 0:
            command = torch.rand(n) * 0.9
        level = tank_step(level, command)
        pumps.append(command)
        levels.append(level + 0.005 * torch.randn(n, 2))
    pumps = torch.stack(pumps).view(n, HORIZON, 1)
    levels = torch.stack(levels).view(n, HORIZON, 2)
    return pumps, levels


class LevelModel(nn.Module):
    """Encodes the first measured levels, then runs on the pump signal alone."""

    def __init__(self, hidden=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2 * WARMUP, hidden), nn.Tanh(), nn.Linear(hidden, hidden))
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, past_levels, future_pumps):
        h0 = torch.tanh(self.encoder(past_levels.flatten(1))).unsqueeze(0)
        out, _ = self.rnn(future_pumps, h0)
        return self.head(out)


pumps, levels = simulate(384)
level_mean = levels.mean((0, 1))
level_std = levels.std((0, 1))
pump_mean, pump_std = pumps.mean(), pumps.std()


def prepare(pumps, levels):
    return (pumps - pump_mean) / pump_std, (levels - level_mean) / level_std


train_u, train_x = prepare(pumps, levels)
test_u, test_x = prepare(*simulate(256))

model = LevelModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=15, gamma=0.4)

for epoch in range(35):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(train_u)).split(32):
        pred = model(train_x[idx, :WARMUP], train_u[idx, WARMUP:])
        loss = F.smooth_l1_loss(pred, train_x[idx, WARMUP:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(idx)
    scheduler.step()
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}  loss {running / len(train_u):.4f}  lr {scheduler.get_last_lr()[0]:.1e}")

model.eval()
with torch.no_grad():
    pred = model(test_x[:, :WARMUP], test_u[:, WARMUP:])
error = (pred - test_x[:, WARMUP:]) * level_std
rmse = error.pow(2).mean((0, 1)).sqrt()
fit = 1 - (error.pow(2).mean() / (test_x * level_std).pow(2).mean()).sqrt().item()
print(f"test RMSE upper {rmse[0]:.4f}  lower {rmse[1]:.4f}  fit {100 * fit:.1f} %")
