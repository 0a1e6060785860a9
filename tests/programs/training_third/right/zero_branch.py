import copy

import torch
from torch import nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv1d(1, width, 5, padding=2), nn.SiLU(), nn.Conv1d(width, width, 5, padding=2), nn.SiLU())
        self.decode = nn.Conv1d(width, 1, 5, padding=2)

    def forward(self, x, extra=None):
        h = self.encode(x)
        return self.decode(h if extra is None else h + extra)


class Controlled(nn.Module):
    def __init__(self, backbone, width=16):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.branch = copy.deepcopy(backbone.encode).requires_grad_(True)
        self.hint = nn.Conv1d(1, 1, 3, padding=1)
        self.bridge = nn.Conv1d(width, width, 1)
        nn.init.zeros_(self.bridge.weight)
        nn.init.zeros_(self.bridge.bias)

    def forward(self, x, hint):
        return self.backbone(x, self.bridge(self.branch(x + self.hint(hint))))


def curves(n, g):
    t = torch.linspace(0, 6.28, 40)
    clean = torch.sin(t + 6.28 * torch.rand(n, 1, generator=g))[:, None]
    step = (t > 6.28 * torch.rand(n, 1, generator=g)).float()[:, None]
    return clean + 0.5 * torch.randn(clean.shape, generator=g), clean, step


def fit(params, forward, target, inputs, epochs):
    opt = torch.optim.Adam(params, lr=3e-3)
    for epoch in range(epochs):
        for rows in torch.arange(len(target)).split(32):
            loss = F.mse_loss(forward(*(t[rows] for t in inputs)), target[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if epoch == 0 and rows[0] == 0:
                total = sum(p.grad.abs().sum().item() for p in params)
                print(f"first batch loss {loss.item():.4f} gradient mass {total:.3f}")
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    noisy, clean, step = curves(192, torch.Generator().manual_seed(1))
    base = Backbone()
    fit(list(base.parameters()), base, clean, (noisy,), epochs=3)
    model = Controlled(base)
    tuned = [p for p in model.parameters() if p.requires_grad]
    fit(tuned, model, clean + step, (noisy, step), epochs=5)
    print("branch shift", round((model.branch[0].weight - base.encode[0].weight).norm().item(), 4))
