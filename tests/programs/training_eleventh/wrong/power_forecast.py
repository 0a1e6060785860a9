"""Day-ahead electricity load forecast (rewritten from the Keras version of the project).

Hourly load is cut into windows of 48 hours; a small temporal convolution net predicts the 12 hours that follow.
EarlyStopping(restore_best_weights=True) is rebuilt here as a small class.
"""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(3)
rng = np.random.default_rng(3)

HISTORY, HORIZON = 48, 12


def make_series(hours):
    t = np.arange(hours)
    daily = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1.0)
    weekly = 0.5 * ((t // 24) % 7 >= 5)
    level = np.cumsum(0.02 * rng.standard_normal(hours))
    return (daily - weekly + level + 0.35 * rng.standard_normal(hours)).astype(np.float32)


def windows(series, stride):
    starts = range(0, len(series) - HISTORY - HORIZON, stride)
    x = np.stack([series[s:s + HISTORY] for s in starts])
    y = np.stack([series[s + HISTORY:s + HISTORY + HORIZON] for s in starts])
    return torch.from_numpy(x), torch.from_numpy(y)


class Forecaster(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2), nn.ReLU(),
            nn.Flatten(),
            nn.Linear(width * HISTORY // 2, 64), nn.ReLU(),
            nn.Linear(64, HORIZON),
        )

    def forward(self, x):
        last = x[:, -1:]
        return last + self.net((x - last).unsqueeze(1))


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.best_epoch = -1
        self.best_weights = None

    def update(self, epoch, value, model):
        """Remembers the weights of the best epoch; returns True when it is time to stop."""
        if value < self.best:
            self.best, self.best_epoch = value, epoch
            self.best_weights = {k: v.detach().cpu().numpy() for k, v in model.state_dict().items()}
        return epoch - self.best_epoch >= self.patience

    def restore(self, model):
        model.load_state_dict({k: torch.from_numpy(w) for k, w in self.best_weights.items()})


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    value = (model(x) - y).pow(2).mean().item()
    model.train()
    return value


x_train, y_train = windows(make_series(900), 2)
x_val, y_val = windows(make_series(2000), 6)
x_test, y_test = windows(make_series(4000), 3)

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
stopper = EarlyStopping(patience=12)

for epoch in range(40):
    order = torch.randperm(len(x_train))
    for start in range(0, len(order), 32):
        idx = order[start:start + 32]
        loss = nn.functional.mse_loss(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_mse = evaluate(model, x_val, y_val)
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d}  train {loss.item():.4f}  val {val_mse:.4f}")
    if stopper.update(epoch, val_mse, model):
        break

stopper.restore(model)
test_mse = evaluate(model, x_test, y_test)
print(f"stopped after epoch {epoch}, best epoch {stopper.best_epoch} with val {stopper.best:.4f}")
print(f"test mse of the best model {test_mse:.4f}")
