"""Sparse mixture of experts that regresses sensor curves of several regimes, with a balance term for its router."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

REGIMES, IN, OUT, EXPERTS = 8, 16, 4, 8

centres = torch.randn(IN) + 0.7 * torch.randn(REGIMES, IN)
maps = torch.randn(REGIMES, IN, OUT) / IN ** 0.5


def make_batch(n):
    regime = torch.randint(0, REGIMES, (n,))
    x = centres[regime] + 0.5 * torch.randn(n, IN)
    y = torch.einsum("ni,nio->no", x, 2.0 * maps[regime])
    return x, y + 0.05 * torch.randn(n, OUT)


class Router(nn.Module):
    """Top-1 routing; returns the chosen expert, its gate value and the load-balancing term."""

    def __init__(self, dim, experts):
        super().__init__()
        self.experts = experts
        self.score = nn.Linear(dim, experts, bias=False)

    def forward(self, x):
        probs = F.softmax(self.score(x), dim=-1)
        gate, index = probs.max(dim=-1)
        load = F.one_hot(index, self.experts).float().mean(0)
        balance = self.experts * (load * load).sum()
        return gate, index, load, balance


class Expert(nn.Module):
    def __init__(self, dim, hidden, out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, out))

    def forward(self, x):
        return self.net(x)


class SparseMixture(nn.Module):
    def __init__(self, hidden=6):
        super().__init__()
        self.router = Router(IN, EXPERTS)
        self.experts = nn.ModuleList(Expert(IN, hidden, OUT) for _ in range(EXPERTS))
        self.shared = nn.Linear(IN, OUT)

    def forward(self, x):
        gate, index, load, balance = self.router(x)
        routed = x.new_zeros(len(x), OUT)
        for e, expert in enumerate(self.experts):
            rows = (index == e).nonzero(as_tuple=True)[0]
            if len(rows):
                routed = routed.index_add(0, rows, gate[rows, None] * expert(x[rows]))
        return self.shared(x) + routed, load, balance


def step_loss(model, x, y, weight):
    pred, load, balance = model(x)
    fit = F.mse_loss(pred, y)
    return fit + weight * balance, fit, load


model = SparseMixture()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400, eta_min=1e-4)
BALANCE = 0.1

for it in range(400):
    x, y = make_batch(192)
    loss, fit, load = step_loss(model, x, y, BALANCE)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if it % 100 == 0 or it == 399:
        print(f"iteration {it:3d}  fit {fit.item():.4f}  total {loss.item():.4f}  busiest expert {load.max().item():.0%}")

model.eval()
with torch.no_grad():
    x, y = make_batch(4000)
    _, fit, load = step_loss(model, x, y, BALANCE)
test_error = fit.item()
busy = int((load > 0.02).sum())
print(f"test error {test_error:.4f}  experts in use {busy} of {EXPERTS}  busiest {load.max().item():.0%}")
