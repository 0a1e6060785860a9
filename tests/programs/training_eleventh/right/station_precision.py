"""Temperature and wind at weather stations, two tasks with predicted variances, in pure bfloat16 with master weights.

Forward and backward pass run in bfloat16.  The optimizer works on a float32 master copy of every parameter, and micro
batches are summed up in the float32 gradients before a step is taken.  Training uses the beta-weighted Gaussian
likelihood, in which the variance also acts as a constant weight.
"""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 29
N_TRAIN, N_TEST, FEATURES = 3000, 1000, 7
STEPS, MICRO, ACCUMULATE = 350, 32, 3
BETA = 0.5


def observations(n, rng):
    season = rng.uniform(0, 2 * np.pi, n)
    hour = rng.uniform(0, 2 * np.pi, n)
    altitude, cloud, gradient = rng.uniform(0, 1, n), rng.uniform(0, 1, n), rng.normal(size=n)
    temperature = -8 * np.cos(season) - 4 * (1 - cloud) * np.cos(hour) - 6 * altitude + (0.4 + 1.2 * cloud) * rng.normal(size=n)
    wind = 2 * np.abs(gradient) + 2 * altitude + np.sin(season) + (0.2 + 0.8 * altitude) * rng.normal(size=n)
    x = np.stack([np.sin(season), np.cos(season), np.sin(hour), np.cos(hour), altitude, cloud, gradient], axis=1)
    y = np.stack([temperature, wind], axis=1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class StationNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.mean = nn.Linear(width, 2)
        self.variance = nn.Linear(width, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h).float(), F.softplus(self.variance(h).float()) + 1e-3


class MasterWeights:
    """Float32 copies of low precision parameters; they own the optimizer state."""

    def __init__(self, working):
        self.working = list(working)
        self.master = [nn.Parameter(p.detach().float().clone()) for p in self.working]

    @torch.no_grad()
    def collect(self):
        """Move the gradients of one micro batch over, so that the sum is kept in float32."""
        for low, full in zip(self.working, self.master):
            if full.grad is None:
                full.grad = torch.zeros_like(full)
            full.grad.add_(low.grad.float())
            low.grad = None

    @torch.no_grad()
    def publish(self):
        for low, full in zip(self.working, self.master):
            low.copy_(full)


def beta_likelihood(mean, variance, target):
    nll = 0.5 * ((target - mean) ** 2 / variance + variance.log())
    return (nll * variance.detach() ** BETA).sum(dim=1).mean()


@torch.no_grad()
def report(net, x, y):
    mean, variance = net(x.bfloat16())
    inside = ((y - mean).abs() < 1.645 * variance.sqrt()).float().mean(dim=0)
    return (y - mean).pow(2).mean(dim=0).sqrt().tolist(), inside.tolist()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    x, y = observations(N_TRAIN, rng)
    x_test, y_test = observations(N_TEST, rng)
    center, scale = y.mean(dim=0), y.std(dim=0)
    y, y_test = (y - center) / scale, (y_test - center) / scale

    net = StationNet()
    weights = MasterWeights(net.parameters())
    net.bfloat16()
    optimizer = torch.optim.AdamW(weights.master, lr=4e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=STEPS)

    for step in range(STEPS):
        total = 0.0
        for _ in range(ACCUMULATE):
            rows = torch.randint(0, N_TRAIN, (MICRO,))
            mean, variance = net(x[rows].bfloat16())
            loss = beta_likelihood(mean, variance, y[rows]) / ACCUMULATE
            loss.backward()
            weights.collect()
            total += loss.item()
        nn.utils.clip_grad_norm_(weights.master, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        weights.publish()
        scheduler.step()
        if (step + 1) % 70 == 0:
            (temp, wind), (temp_in, wind_in) = report(net, x_test, y_test)
            print(f"step {step + 1}  loss {total:.3f}  rmse {temp:.3f} {wind:.3f}  inside the 90% band {temp_in:.2f} {wind_in:.2f}")


if __name__ == "__main__":
    main()
