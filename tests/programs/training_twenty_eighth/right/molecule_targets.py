"""Properties on very different scales from one net: each loss enters relative to its present value."""
import torch
from torch import nn
from torch.nn import functional as F

ATOMS = 9
SCALES = {"energy": 100.0, "dipole": 1.0, "gap": 0.01}


def make_molecules(count, generator):
    x = torch.rand(count, ATOMS, generator=generator) * 2 - 1
    energy = 2 * x[:, 0] - x[:, 1] + x[:, 0] * x[:, 1]
    dipole = torch.sin(2 * x[:, 2]) + x[:, 3]
    gap = torch.exp(-x[:, 4]) - x[:, 5] - x[:, 6]
    raw = {"energy": energy, "dipole": dipole, "gap": gap}
    noise = torch.randn(3, count, generator=generator)
    return x, {k: SCALES[k] * (v + 0.1 * n) for (k, v), n in zip(raw.items(), noise)}


class PropertyNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ATOMS, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleDict({k: nn.Linear(hidden, 1) for k in SCALES})
        for k, head in self.heads.items():
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
            self.register_buffer(f"shift_{k}", torch.zeros(()))
            self.register_buffer(f"scale_{k}", torch.ones(()))

    @torch.no_grad()
    def fit_scales(self, targets):
        for k, values in targets.items():
            getattr(self, f"shift_{k}").copy_(values.mean())
            getattr(self, f"scale_{k}").copy_(values.std())

    def forward(self, x):
        h = self.body(x)
        return {k: head(h).squeeze(1) * getattr(self, f"scale_{k}") + getattr(self, f"shift_{k}")
                for k, head in self.heads.items()}


def relative(loss):
    """The gradient of log(loss), with the sum of the terms equal to their number."""
    return loss / loss.detach().clamp_min(1e-12)


def property_losses(model, x, targets):
    predicted = model(x)
    return {k: F.mse_loss(predicted[k], targets[k]) for k in SCALES}


@torch.no_grad()
def explained(model, data):
    x, targets = data
    predicted = model(x)
    return {k: 1 - (F.mse_loss(predicted[k], targets[k]) / targets[k].var()).item() for k in SCALES}


def train(steps=260, accumulate=2, size=48):
    generator = torch.Generator().manual_seed(13)
    x, targets = make_molecules(2500, generator)
    valid = make_molecules(500, generator)
    model = PropertyNet()
    model.fit_scales(targets)
    optimizer = torch.optim.NAdam([
        {"params": model.body.parameters(), "lr": 3e-3},
        {"params": model.heads.parameters(), "lr": 6e-3},
    ])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    for step in range(1, steps + 1):
        optimizer.zero_grad()
        for _ in range(accumulate):
            idx = torch.randint(0, len(x), (size,), generator=generator)
            losses = property_losses(model, x[idx], {k: t[idx] for k, t in targets.items()})
            objective = sum(relative(loss) for loss in losses.values())
            (objective / accumulate).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 65 == 0:
            scores = explained(model, valid)
            print(f"step {step:4d}  objective {objective.item():.3f}  "
                  + "  ".join(f"{k} R2 {v:.3f}" for k, v in scores.items()))
    return model, explained(model, valid)


if __name__ == "__main__":
    torch.manual_seed(23)
    model, scores = train()
