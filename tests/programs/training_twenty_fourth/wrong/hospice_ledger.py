"""Deep Cox model (time to event, right censoring) on synthetic patient records."""
import numpy as np
import torch
import torch.nn as nn

SEED, N, N_FEATURES = 5, 3000, 12


def simulate(n, rng):
    """Weibull event times; frailer patients also leave the study earlier (moved to another home)."""
    x = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    risk = 1.2 * x[:, 0] - 0.8 * x[:, 1] + 0.9 * np.sin(2 * x[:, 2]) + 0.6 * x[:, 3] * x[:, 4]
    event_time = (rng.exponential(size=n) * np.exp(-risk)) ** 0.7
    leave_time = (rng.exponential(size=n) * np.exp(-1.0 * risk + 0.5 * x[:, 5])) ** 0.7 * 1.3
    time = np.minimum(event_time, leave_time)
    return x, time.astype(np.float32), (event_time <= leave_time).astype(np.float32)


class RiskNet(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(N_FEATURES, width), nn.SELU(), nn.Dropout(p),
            nn.Linear(width, width), nn.SELU(), nn.Dropout(p),
            nn.Linear(width, 1, bias=False),  # the baseline hazard absorbs any constant
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def cox_loss(log_risk, event):
    """Negative partial log likelihood (Breslow); rows in descending order of time.

    With that order the risk set of row i is rows 0..i, hence the running logsumexp.
    """
    log_at_risk = torch.logcumsumexp(log_risk, dim=0)
    return -((log_risk - log_at_risk) * event).sum() / event.sum().clamp(min=1)


def concordance(log_risk, time, event):
    """Harrell's C: over pairs whose earlier time is an event, how often the earlier one has the higher risk."""
    earlier = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    higher = (log_risk[:, None] > log_risk[None, :]).float()
    return (higher * earlier).sum().item() / earlier.sum().item()


class SurvivalData:
    """Tensors in descending order of time, as the partial likelihood wants them."""

    def __init__(self, x, time, event, mean=None, std=None):
        order = np.argsort(-time)
        self.mean = x.mean(0) if mean is None else mean
        self.std = x.std(0) if std is None else std
        self.x = torch.from_numpy((x[order] - self.mean) / self.std)
        self.time = torch.from_numpy(time[order])
        self.event = torch.from_numpy(event[order])

    def __len__(self):
        return len(self.time)

    def batches(self, size):
        for rows in torch.randperm(len(self)).split(size):
            yield self.x[rows], self.event[rows]


def evaluate(model, data):
    model.eval()
    with torch.no_grad():
        log_risk = model(data.x)
    return cox_loss(log_risk, data.event).item(), concordance(log_risk, data.time, data.event)


def fit(train, valid, epochs=15, batch_size=128, lr=2e-3):
    model = RiskNet()
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, event in train.batches(batch_size):
            loss = cox_loss(model(x), event)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(x) / len(train)
        sched.step()
        if epoch % 3 == 2:
            nll, c = evaluate(model, valid)
            print(f"epoch {epoch + 1:2d}  train nll {total:.3f}  valid nll {nll:.3f}  C-index {c:.3f}")
    return model


if __name__ == "__main__":
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train = SurvivalData(*simulate(N, rng))
    valid = SurvivalData(*simulate(800, rng), mean=train.mean, std=train.std)
    print(f"{len(train)} patients, {train.event.mean().item():.0%} with event")
    model = fit(train, valid)
    print("final C-index %.3f" % evaluate(model, valid)[1])
