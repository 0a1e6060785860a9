"""Electric load forecasting over several horizons with weights per horizon."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(71)

WINDOW, HORIZONS = 24, (1, 3, 6, 12)
HORIZON_WEIGHTS = torch.tensor([0.4, 0.3, 0.2, 0.1])


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(hidden, 1) for _ in HORIZONS)

    def forward(self, x):
        out, _ = self.rnn(x.unsqueeze(-1))
        last = out[:, -1]
        return [head(last).squeeze(-1) for head in self.heads]


def load_series(length=700):
    t = torch.arange(length, dtype=torch.float)
    daily = torch.sin(2 * torch.pi * t / 24)
    weekly = 0.5 * torch.sin(2 * torch.pi * t / 168)
    return daily + weekly + 0.1 * torch.randn(length)


def windows(series):
    last = len(series) - WINDOW - max(HORIZONS)
    x = torch.stack([series[i : i + WINDOW] for i in range(last)])
    y = torch.stack([torch.stack([series[i + WINDOW + h - 1] for h in HORIZONS]) for i in range(last)])
    return x, y


def criterion(predictions, targets):
    per_horizon = []
    for h, pred in enumerate(predictions):
        per_horizon.append(F.mse_loss(pred, targets[:, h]).item())
    per_horizon = torch.tensor(per_horizon, requires_grad=True)
    return (per_horizon * HORIZON_WEIGHTS).sum()


x, y = windows(load_series())
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

for epoch in range(4):
    epoch_loss = 0.0
    batches = torch.randperm(len(x)).split(96)
    for idx in batches:
        optimizer.zero_grad()
        loss = criterion(model(x[idx]), y[idx])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    scheduler.step()
    print(f"epoch {epoch}: loss {epoch_loss / len(batches):.4f}")
