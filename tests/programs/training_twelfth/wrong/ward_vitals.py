"""Early-warning score for a hospital ward: a small network on vital signs, trained, saved and reloaded for deployment."""
import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
rng = np.random.default_rng(3)

VITALS = ["heart_rate", "systolic", "diastolic", "resp_rate", "temperature", "spo2", "lactate"]
CENTER = np.array([82.0, 121.0, 76.0, 17.0, 36.9, 96.5, 1.4])
SPREAD = np.array([15.0, 18.0, 11.0, 3.5, 0.5, 2.0, 0.7])


def make_patients(n):
    z = rng.normal(size=(n, len(VITALS)))
    z[:, 2] = 0.7 * z[:, 1] + 0.7 * z[:, 2]
    x = CENTER + SPREAD * z
    risk = 0.9 * z[:, 0] - 1.1 * z[:, 1] + 0.8 * z[:, 3] * (z[:, 5] < 0) + 1.2 * z[:, 6] - 0.7 * z[:, 5] - 0.4
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-2.0 * risk))).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class InputScaler(nn.Module):
    """Standardizes the inputs with statistics that are collected while training."""

    def __init__(self, n_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.count = 0
        self.mean = torch.zeros(n_features)
        self.var = torch.ones(n_features)

    def forward(self, x):
        if self.training:
            n = x.shape[0]
            total = self.count + n
            delta = x.mean(0) - self.mean
            m2 = self.var * self.count + x.var(0, unbiased=False) * n + delta ** 2 * self.count * n / total
            self.mean = self.mean + delta * n / total
            self.var = m2 / total
            self.count = total
        return (x - self.mean) / torch.sqrt(self.var + self.eps)


class WardScore(nn.Module):
    def __init__(self, n_features=len(VITALS), hidden=32):
        super().__init__()
        self.scaler = InputScaler(n_features)
        self.body = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.body(self.scaler(x)).squeeze(-1)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    loss = F.binary_cross_entropy_with_logits(logits, y).item()
    order = logits.argsort()
    ranks = torch.empty_like(logits)
    ranks[order] = torch.arange(1, len(y) + 1, dtype=logits.dtype)
    pos = y.sum()
    auc = (ranks[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))
    return loss, auc.item()


def main():
    x_train, y_train = make_patients(3000)
    x_valid, y_valid = make_patients(800)
    x_test, y_test = make_patients(1500)

    model = WardScore()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    best, checkpoint = float("inf"), None
    for epoch in range(15):
        model.train()
        for idx in torch.randperm(len(x_train)).split(64):
            loss = F.binary_cross_entropy_with_logits(model(x_train[idx]), y_train[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        valid_loss, valid_auc = evaluate(model, x_valid, y_valid)
        if valid_loss < best:
            best = valid_loss
            checkpoint = io.BytesIO()
            torch.save({"epoch": epoch, "model": model.state_dict()}, checkpoint)
    print(f"last epoch   valid loss {valid_loss:.4f}  auc {valid_auc:.4f}")

    checkpoint.seek(0)
    saved = torch.load(checkpoint)
    deployed = WardScore()
    deployed.load_state_dict(saved["model"])
    test_loss, test_auc = evaluate(deployed, x_test, y_test)
    print(f"deployed (epoch {saved['epoch']})  test loss {test_loss:.4f}  auc {test_auc:.4f}")
    return best, test_loss, test_auc


if __name__ == "__main__":
    best_valid, test_loss, test_auc = main()
