import torch
from torch import nn
import torch.nn.functional as F


class CropNet(nn.Module):
    def __init__(self, inputs=14, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict({"yield": nn.Linear(width, 1), "moisture": nn.Linear(width, 1), "disease": nn.Linear(width, 3)})

    def forward(self, x):
        h = self.body(x)
        return {name: head(h) for name, head in self.heads.items()}


class NoiseBalancedLoss(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in tasks})

    def precision(self, task):
        return torch.exp(-self.log_var[task]).item()

    def forward(self, losses):
        total = 0.0
        for task, value in losses.items():
            total = total + self.precision(task) * value + self.log_var[task]
        return total

    def describe(self):
        return " ".join(f"{t}={self.precision(t):.2f}" for t in self.log_var)


def task_losses(out, batch):
    return {
        "yield": F.mse_loss(out["yield"].squeeze(-1), batch["yield"]),
        "moisture": F.mse_loss(out["moisture"].squeeze(-1), batch["moisture"]),
        "disease": F.cross_entropy(out["disease"], batch["disease"]),
    }


def fields(n, g):
    x = torch.randn(n, 14, generator=g)
    noise = torch.randn(n, 2, generator=g)
    return x, {
        "yield": x[:, 0] + x[:, 1].abs() + 0.1 * noise[:, 0],
        "moisture": x[:, 2] + 2.5 * noise[:, 1],
        "disease": (x[:, 3] > 0.4).long() + (x[:, 4] > 0).long(),
    }


def fit(net, balance, x, targets, epochs=8, batch=40):
    opt = torch.optim.Adam([{"params": net.parameters()}, {"params": balance.parameters(), "lr": 0.02}], lr=3e-3)
    for epoch in range(epochs):
        for rows in torch.arange(len(x)).split(batch):
            parts = task_losses(net(x[rows]), {k: v[rows] for k, v in targets.items()})
            loss = balance(parts)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f} precision {balance.describe()}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, targets = fields(400, torch.Generator().manual_seed(5))
    net, balance = CropNet(), NoiseBalancedLoss(["yield", "moisture", "disease"])
    fit(net, balance, x, targets)
