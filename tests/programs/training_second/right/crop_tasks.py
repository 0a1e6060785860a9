import torch
from torch import nn

torch.manual_seed(131)


class UncertaintyWeighting(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in tasks})

    def forward(self, losses):
        total = 0.0
        for task, loss in losses.items():
            s = self.log_var[task]
            total = total + 0.5 * (torch.exp(-s) * loss + s)
        return total


class CropModel(nn.Module):
    def __init__(self, bands, tasks, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(bands, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleDict({t: nn.Linear(hidden, 1) for t in tasks})

    def forward(self, x):
        h = self.shared(x)
        return {t: head(h).squeeze(1) for t, head in self.heads.items()}


def fields(n):
    x = torch.randn(n, 8)
    moisture = 0.5 * x[:, 0] + 0.2 * x[:, 1] * x[:, 2]
    growth = torch.tanh(x[:, 3] - x[:, 0])
    noise = torch.randn(3, n)
    return x, {
        "moisture": moisture + 0.02 * noise[0],
        "growth": growth + 0.05 * noise[1],
        "pests": 0.3 * x[:, 4].abs() + 0.3 * noise[2],
    }


x, targets = fields(400)
model, weighting = CropModel(8, targets), UncertaintyWeighting(targets)
optimizer = torch.optim.Adam(
    [
        {"params": model.parameters(), "lr": 5e-3},
        {"params": weighting.parameters(), "lr": 2e-2},
    ]
)
for step in range(150):
    rows = torch.randint(0, 400, (50,))
    outputs = model(x[rows])
    losses = {t: (outputs[t] - targets[t][rows]).square().mean() for t in targets}
    objective = weighting(losses)
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
    if step % 50 == 49:
        shown = " ".join(f"{t} {v.item():.4f}" for t, v in losses.items())
        print(f"step {step + 1} objective {objective.item():.4f} {shown}")

with torch.no_grad():
    x, targets = fields(200)
    outputs = model(x)
    for t, s in weighting.log_var.items():
        rmse = (outputs[t] - targets[t]).square().mean().sqrt()
        print(f"{t}: rmse {rmse:.4f} learned sigma {torch.exp(0.5 * s):.4f}")
