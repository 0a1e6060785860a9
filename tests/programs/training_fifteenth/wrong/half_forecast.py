"""Load forecasting with a GRU; half precision activations with a loss scaler kept small enough to read."""
import numpy as np
import torch
import torch.nn as nn

SEED = 5
WINDOW = 24
CLIP = 1.0


def household(n, rng):
    hours = np.arange(n)
    daily = np.sin(2 * np.pi * hours / 24) + 0.5 * np.sin(4 * np.pi * hours / 24 + 0.7)
    weekly = 0.4 * np.sin(2 * np.pi * hours / 168)
    noise = np.zeros(n)
    for i in range(1, n):
        noise[i] = 0.8 * noise[i - 1] + 0.1 * rng.standard_normal()
    spikes = (rng.random(n) < 0.01) * rng.exponential(1.5, n)
    return (daily + weekly + noise + spikes).astype(np.float32)


def windows(series):
    x = np.lib.stride_tricks.sliding_window_view(series, WINDOW + 1)
    x = torch.tensor(x.copy())
    return x[:, :-1, None], x[:, -1]


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1].bfloat16().float()).squeeze(-1)


class LossScaler:
    """Dynamic loss scale: halve on overflow, double after a run of good steps."""

    def __init__(self, scale=1024.0, patience=200, limit=4096.0):
        self.value = scale
        self.patience = patience
        self.limit = limit
        self.good = 0

    def scale(self, loss):
        return loss * self.value

    def step(self, optimizer, params):
        grads = [p.grad for p in params if p.grad is not None]
        if not all(torch.isfinite(g).all() for g in grads):
            self.value /= 2
            self.good = 0
            return False
        for g in grads:
            g.div_(self.value)
        optimizer.step()
        self.good += 1
        if self.good % self.patience == 0:
            self.value = min(self.value * 2, self.limit)
        return True


def train(model, x, y, epochs=6, batch=32):
    params = list(model.parameters())
    opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    scaler = LossScaler()
    skipped = 0
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        total = 0.0
        for idx in order.split(batch):
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.smooth_l1_loss(model(x[idx]), y[idx])
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(params, CLIP)
            if not scaler.step(opt, params):
                skipped += 1
            total += loss.item() * len(idx)
        print(f"epoch {epoch}  loss {total / len(x):.4f}  scale {scaler.value:.0f}  skipped {skipped}")
    return total / len(x)


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    series = household(2000, rng)
    x, y = windows(series[:1600])
    xt, yt = windows(series[1600:])
    model = Forecaster()
    final = train(model, x, y)
    model.eval()
    with torch.no_grad():
        rmse = (model(xt) - yt).pow(2).mean().sqrt().item()
        naive = (xt[:, -1, 0] - yt).pow(2).mean().sqrt().item()
    print(f"train loss {final:.4f}  test rmse {rmse:.4f}  last-value rmse {naive:.4f}")


if __name__ == "__main__":
    main()
