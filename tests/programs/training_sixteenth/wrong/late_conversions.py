"""Conversion-rate model on a stream with delayed feedback (fake-negative weighting).

Every click enters the stream at once with label 0. If it converts later, the same click is sent again with
label 1. The log-likelihood is reweighted so that the model learns the true rate p and not p / (1 + p).
"""
import argparse

import numpy as np
import torch
from torch import nn

N_CAMPAIGNS = 40
N_DENSE = 6


def set_seed(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


class ClickLog:
    """Simulated click log with a known conversion probability."""

    def __init__(self, rng):
        self.rng = rng
        self.campaign_effect = rng.normal(0, 0.4, N_CAMPAIGNS)
        self.w = rng.normal(0, 0.2, N_DENSE)

    def sample(self, n):
        campaign = self.rng.integers(0, N_CAMPAIGNS, n)
        dense = self.rng.normal(size=(n, N_DENSE)).astype(np.float32)
        score = self.campaign_effect[campaign] + dense @ self.w - 2.0 + 0.3 * np.tanh(dense[:, 0] * dense[:, 1])
        p = 1 / (1 + np.exp(-score))
        converted = self.rng.random(n) < p
        return campaign, dense, p, converted

    def stream(self, n):
        """The impressions as the trainer sees them: all clicks as negatives, conversions once more as positives."""
        campaign, dense, _, converted = self.sample(n)
        idx = np.concatenate([np.arange(n), np.flatnonzero(converted)])
        label = np.concatenate([np.zeros(n), np.ones(converted.sum())]).astype(np.float32)
        order = self.rng.permutation(len(idx))
        idx, label = idx[order], label[order]
        return torch.from_numpy(campaign[idx]), torch.from_numpy(dense[idx]), torch.from_numpy(label)


class ConversionNet(nn.Module):
    def __init__(self, dim=8, hidden=48):
        super().__init__()
        self.campaign = nn.Embedding(N_CAMPAIGNS, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + N_DENSE, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        nn.init.constant_(self.mlp[-1].bias, -2.0)

    def forward(self, campaign, dense):
        return self.mlp(torch.cat([self.campaign(campaign), dense], dim=1)).squeeze(1)


def fnw_loss(logits, label):
    """Importance weights: (1 + p) for positives and (1 - p)(1 + p) for observed negatives, p from the model."""
    log_p = nn.functional.logsigmoid(logits)
    log_not_p = nn.functional.logsigmoid(-logits)
    p = torch.sigmoid(logits)
    w_pos = 1 + p
    w_neg = (1 - p) * (1 + p)
    return -(label * w_pos * log_p + (1 - label) * w_neg * log_not_p).mean()


def evaluate(model, campaign, dense, p_true, converted):
    model.eval()
    with torch.no_grad():
        pred = torch.sigmoid(model(torch.from_numpy(campaign), torch.from_numpy(dense))).numpy().astype(np.float64)
    model.train()
    clipped = pred.clip(1e-6, 1 - 1e-6)
    logloss = -(converted * np.log(clipped) + (~converted) * np.log(1 - clipped)).mean()
    return {"logloss": logloss, "calibration": pred.mean() / p_true.mean(), "mae": np.abs(pred - p_true).mean()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--clicks-per-hour", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-3)
    args, _ = parser.parse_known_args()

    set_seed(args.seed)
    log = ClickLog(np.random.default_rng(args.seed))
    holdout = log.sample(8000)
    model = ConversionNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for hour in range(args.hours):
        campaign, dense, label = log.stream(args.clicks_per_hour)
        running = 0.0
        for start in range(0, len(label), args.batch_size):
            sl = slice(start, start + args.batch_size)
            loss = fnw_loss(model(campaign[sl], dense[sl]), label[sl])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(label[sl])
        if (hour + 1) % 12 == 0:
            m = evaluate(model, *holdout)
            print(f"hour {hour + 1:3d}  train {running / len(label):.4f}  " + "  ".join(f"{k} {v:.4f}" for k, v in m.items()))
    return m


if __name__ == "__main__":
    metrics = main()
