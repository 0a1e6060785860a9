"""Day-ahead load forecast with uncertainty: the network gives a mean and a spread per hour, bands go to the traders."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = dict(context=48, horizon=6, hidden=64, lr=3e-3, steps=700, batch=128, patience=5, seed=21)


def load_curve(hours, generator):
    """Hourly load (in units of the yearly mean deviation); evenings are far noisier than nights."""
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.cos(4 * math.pi * t / 24)
    weekly = 0.3 * torch.sin(2 * math.pi * t / 168)
    noise_level = 0.12 + 0.30 * torch.sigmoid(4 * torch.sin(2 * math.pi * (t - 4) / 24))
    return daily + weekly + noise_level * torch.randn(hours, generator=generator)


def windows(series, context, horizon, stride=1):
    cut = series.unfold(0, context + horizon, stride)
    return cut[:, :context], cut[:, context:]


class BandNet(nn.Module):
    def __init__(self, context, horizon, hidden):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(context, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, horizon)
        self.spread = nn.Linear(hidden, horizon)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h), F.softplus(self.spread(h)) + 1e-3

    @torch.no_grad()
    def band(self, x, z=1.645):
        """Central 90 % band."""
        mu, sigma = self(x)
        return mu - z * sigma, mu + z * sigma


def nll(model, x, y):
    mu, sigma = model(x)
    return F.gaussian_nll_loss(mu, y, sigma)


def coverage(model, x, y):
    low, high = model.band(x)
    return ((y >= low) & (y <= high)).float().mean().item()


def fit(cfg):
    torch.manual_seed(cfg["seed"])
    g = torch.Generator().manual_seed(cfg["seed"])
    series = load_curve(24 * 500, g)
    train_part, valid_part, test_part = series[:8400], series[8400:10000], series[10000:]
    x, y = windows(train_part, cfg["context"], cfg["horizon"])
    vx, vy = windows(valid_part, cfg["context"], cfg["horizon"])
    model = BandNet(cfg["context"], cfg["horizon"], cfg["hidden"])
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=1e-3)
    best, best_state, bad = float("inf"), None, 0
    for step in range(1, cfg["steps"] + 1):
        model.train()
        pick = torch.randint(0, len(x), (cfg["batch"],))
        loss = nll(model, x[pick], y[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                score = nll(model, vx, vy).item()
            mae = (model(vx)[0] - vy).abs().mean().item()
            print(f"step {step:4d}  train nll {loss.item():.3f}  valid nll {score:.3f}  valid mae {mae:.3f}")
            if score < best:
                best, bad = score, 0
                best_state = {k: v.clone() for k, v in model.state_dict().items()}
            else:
                bad += 1
                if bad == cfg["patience"]:
                    break
    model.load_state_dict(best_state)
    return model, windows(test_part, cfg["context"], cfg["horizon"])


def main():
    model, (tx, ty) = fit(CONFIG)
    mu, _ = model(tx)
    low, high = model.band(tx)
    test_coverage = coverage(model, tx, ty)
    print(f"test mae {(mu - ty).abs().mean().item():.3f}  band width {(high - low).mean().item():.3f}  "
          f"inside the band {test_coverage:.3f}")
    return model, test_coverage


if __name__ == "__main__":
    main()
