"""Bayesian dose-response regression with a small network, sampled by preconditioned Langevin dynamics."""
import math

import torch
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)

N = 80
NOISE = 0.08
PRIOR_STD = 1.0
BURN_IN = 1000
DRAWS = 40
THIN = 40


def response(dose):
    return 1.0 / (1.0 + torch.exp(-4.0 * (dose - 0.3))) - 0.3 * torch.exp(-8 * (dose + 0.6) ** 2)


dose = torch.cat([torch.rand(N // 2) * 0.8 - 1.2, torch.rand(N // 2) * 0.7 + 0.3]).unsqueeze(1)
effect = response(dose) + NOISE * torch.randn(N, 1)
grid = torch.linspace(-1.6, 1.6, 65).unsqueeze(1)


class DoseNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x))


class PSGLD(torch.optim.Optimizer):
    """Langevin sampler with an RMSprop preconditioner (Li et al., 2016)."""

    def __init__(self, params, lr, alpha=0.99, eps=1e-1):
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["square"] = torch.ones_like(p)
                state["square"].mul_(group["alpha"]).addcmul_(p.grad / N, p.grad / N, value=1 - group["alpha"])
                precond = 1.0 / (state["square"].sqrt() + group["eps"])
                noise = torch.randn_like(p) * (group["lr"] * precond).sqrt()
                p.add_(-0.5 * group["lr"] * precond * p.grad + noise)


def negative_log_posterior(net, x, y):
    nll = 0.5 * ((net(x) - y) / NOISE).pow(2).mean() * N
    prior = sum(0.5 * (p / PRIOR_STD).pow(2).sum() for p in net.parameters())
    return nll + prior


net = DoseNet()
sampler = PSGLD(net.parameters(), lr=4e-5)
posterior = []

for step in range(BURN_IN + DRAWS * THIN):
    batch = torch.randperm(N)[:40]
    energy = negative_log_posterior(net, dose[batch], effect[batch])
    sampler.zero_grad()
    energy.backward()
    sampler.step()
    if step >= BURN_IN and (step - BURN_IN) % THIN == 0:
        posterior.append(net.state_dict())
    if (step + 1) % 500 == 0:
        print(f"step {step + 1:4d}  energy {energy.item():.2f}")


@torch.no_grad()
def predictive(states, x):
    model = DoseNet()
    curves = []
    for state in states:
        model.load_state_dict(state)
        model.eval()
        curves.append(model(x))
    curves = torch.stack(curves)
    variance = curves.var(0, unbiased=False) + NOISE ** 2
    return curves.mean(0), variance.sqrt()


mean, std = predictive(posterior, grid)
truth = response(grid)
rmse = (mean - truth).pow(2).mean().sqrt().item()
nlpd = (0.5 * ((truth - mean) / std).pow(2) + std.log() + 0.5 * math.log(2 * math.pi)).mean().item()
print(f"draws {len(posterior)}  predictive RMSE {rmse:.4f}  NLPD {nlpd:.4f}")
print(f"std inside the data {std[10:20].mean():.4f}  in the gap {std[28:38].mean():.4f}  outside {std[-8:].mean():.4f}")
