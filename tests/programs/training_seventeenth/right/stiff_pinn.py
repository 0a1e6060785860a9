"""Physics-informed network for a boundary layer problem with gradient-statistics loss balancing (Wang et al., 2021).

    eps u'' + u' = 0 on (0, 1),  u(0) = 0,  u(1) = 1
Adam finds the shape, L-BFGS polishes it.
"""
import math

import torch
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)

EPS = 0.15
ADAM_STEPS, LBFGS_CALLS = 600, 8


def exact(x):
    return (1 - torch.exp(-x / EPS)) / (1 - math.exp(-1 / EPS))


class FourierFeatures(nn.Module):
    """Random frequencies, drawn once (Tancik et al., 2020)."""

    def __init__(self, n=24, sigma=2.0):
        super().__init__()
        self.freq = nn.Parameter(sigma * torch.randn(1, n), requires_grad=False)

    def forward(self, x):
        return torch.cat([torch.sin(x @ self.freq), torch.cos(x @ self.freq), x], dim=1)


class Solution(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.features = FourierFeatures()
        self.net = nn.Sequential(nn.Linear(49, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(self.features(x))


def residual_loss(model, x):
    x = x.detach().requires_grad_(True)
    u = model(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    d2u = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
    return (EPS * d2u + du).pow(2).mean()


ends = torch.tensor([[0.0], [1.0]])
values = torch.tensor([[0.0], [1.0]])


def boundary_loss(model):
    return (model(ends) - values).pow(2).mean()


model = Solution()
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trainable, lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.997)
balance = 1.0

for step in range(ADAM_STEPS):
    loss_r = residual_loss(model, torch.rand(64, 1))
    loss_b = boundary_loss(model)
    if step % 10 == 0:
        g_r = torch.autograd.grad(loss_r, trainable, retain_graph=True, allow_unused=True)
        g_b = torch.autograd.grad(loss_b, trainable, retain_graph=True)
        top = max(g.abs().max().item() for g in g_r if g is not None)
        typical = torch.cat([g.flatten().abs() for g in g_b]).mean().item()
        balance = 0.9 * balance + 0.1 * min(top / (typical + 1e-8), 500.0)
    for p in trainable:
        p.grad = None
    loss_r.backward()
    (balance * loss_b).backward()
    optimizer.step()
    scheduler.step()
    if (step + 1) % 200 == 0:
        print(f"step {step + 1:3d}  residual {loss_r.item():.5f}  boundary {loss_b.item():.2e}  balance {balance:.1f}")

fixed_x = torch.linspace(0, 1, 101).unsqueeze(1)
polish = torch.optim.LBFGS(trainable, max_iter=20, history_size=30, line_search_fn="strong_wolfe")


def closure():
    model.zero_grad()
    loss = residual_loss(model, fixed_x) + balance * boundary_loss(model)
    loss.backward()
    return loss


start = closure().item()
for call in range(LBFGS_CALLS):
    polish.step(closure)
end = closure().item()
print(f"L-BFGS objective {start:.6f} -> {end:.6f}")

model.eval()
with torch.no_grad():
    error = (model(fixed_x) - exact(fixed_x)).abs().max().item()
print(f"largest error {error:.5f}")
