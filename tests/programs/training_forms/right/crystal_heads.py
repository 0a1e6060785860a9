import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(59)
SCALES = {"gap": 0.3, "volume": 4.0, "hardness": 1.5}


class MultiHead(nn.Module):
    def __init__(self, inputs=14, width=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.Mish())
        self.heads = nn.ModuleDict({k: nn.Linear(width, 1) for k in SCALES})

    def forward(self, x):
        h = self.body(x)
        return {k: head(h).squeeze(-1) for k, head in self.heads.items()}


class Balance(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.log_var = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in names})

    def forward(self, errors):
        weight = {k: torch.exp(-v) for k, v in self.log_var.items()}
        fit = sum(weight[k] * e for k, e in errors.items())
        return fit + sum(self.log_var.values())


x = torch.randn(600, 14)
mix = torch.randn(3, 14)
truth = {
    k: s * (torch.sin(x @ m) + 0.4 * torch.randn(600)) for (k, s), m in zip(SCALES.items(), mix)
}

model, balance = MultiHead(), Balance(SCALES)
opt = torch.optim.Adam([*model.parameters(), *balance.parameters()], lr=1e-2)
for epoch in range(8):
    for pick in torch.randperm(600).split(60):
        found = model(x[pick])
        errors = {k: F.mse_loss(found[k], truth[k][pick]) for k in SCALES}
        loss = balance(errors)
        opt.zero_grad()
        loss.backward()
        opt.step()
    shown = " ".join(f"{k} {e.item():.3f} ({balance.log_var[k].item():+.2f})" for k, e in errors.items())
    print(f"epoch {epoch} loss {loss.item():.3f} {shown}")
