"""Short-horizon return forecast from order flow, ported from my old Keras notebook.

Every sample is a window of the last 24 ticks (imbalance, spread, signed volume),
the target is the standardised mid-price move over the next ticks.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 7
WINDOW = 24
EPOCHS = 14
BATCH = 64
PEAK_LR = 4e-3
WARMUP = 2

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def simulate(n_ticks=3200):
    """AR(1) imbalance drives the price through a decaying, saturating impact."""
    imbalance = np.zeros(n_ticks)
    for t in range(1, n_ticks):
        imbalance[t] = 0.85 * imbalance[t - 1] + rng.normal(scale=0.5)
    spread = np.abs(rng.normal(1.0, 0.3, n_ticks))
    volume = np.sign(imbalance) * rng.gamma(2.0, 0.5, n_ticks)
    kernel = np.exp(-np.arange(8) / 3.0)
    impact = np.convolve(np.tanh(imbalance) / spread, kernel)[:n_ticks]
    move = impact + 0.3 * volume + rng.normal(scale=0.5, size=n_ticks)
    return np.stack([imbalance, spread, volume], axis=1), move


def make_windows(features, move):
    xs, ys = [], []
    for t in range(WINDOW, len(features)):
        xs.append(features[t - WINDOW:t])
        ys.append(move[t - 1])
    return np.array(xs, dtype=np.float32), np.array(ys, dtype=np.float32)


class FlowGRU(nn.Module):
    def __init__(self, n_features=3, hidden=32):
        super().__init__()
        self.gru = nn.GRU(n_features, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        out, _ = self.gru(x)
        return self.head(out[:, -1]).squeeze(-1)


def learning_rate(epoch):
    """Same schedule as in the notebook: linear warm-up, then half a cosine."""
    if epoch < WARMUP:
        return PEAK_LR * (epoch + 1) / WARMUP
    progress = (epoch - WARMUP) / (EPOCHS - WARMUP)
    return PEAK_LR * 0.5 * (1.0 + math.cos(math.pi * progress))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x)
    model.train()
    mse = nn.functional.mse_loss(pred, y).item()
    hit = ((pred > 0) == (y > 0)).float().mean().item()
    return mse, hit


features, move = simulate()
x, y = make_windows(features, move)
split = int(0.8 * len(x))
mean, std = x[:split].mean((0, 1)), x[:split].std((0, 1))
x = (x - mean) / std
y = (y - y[:split].mean()) / y[:split].std()
x, y = torch.from_numpy(x), torch.from_numpy(y)
# windows overlap, so leave a gap between training and test ticks
x_test, y_test = x[split + WINDOW:], y[split + WINDOW:]
loader = DataLoader(TensorDataset(x[:split], y[:split]), batch_size=BATCH, shuffle=True)

model = FlowGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=learning_rate)

for epoch in range(EPOCHS):
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(xb)
    scheduler.step()
    if epoch % 3 == 1:
        mse, hit = evaluate(model, x_test, y_test)
        print(f"epoch {epoch:2d}  train {total / split:.4f}  test mse {mse:.4f}  hit rate {hit:.3f}")

test_mse, test_hit = evaluate(model, x_test, y_test)
print(f"final test mse {test_mse:.4f}, hit rate {test_hit:.3f}")
