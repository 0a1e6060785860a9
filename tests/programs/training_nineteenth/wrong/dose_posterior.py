"""Bayesian neural net for a dose-response curve: variational weights, trained with the negative ELBO."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

N_TRAIN = 400
NOISE = 0.15
STEPS = 1500
BATCH = 100


def response(dose):
    return 1.6 / (1.0 + torch.exp(-3.0 * (dose - 0.3))) - 0.7 + 0.3 * torch.sin(4.0 * dose)


class VariationalLinear(nn.Module):
    """Linear layer with a factorised Gaussian over weights and biases."""

    def __init__(self, n_in, n_out, prior_std=1.0):
        super().__init__()
        self.prior_std = prior_std
        self.w_mu = nn.Parameter(torch.randn(n_out, n_in) / math.sqrt(n_in))
        self.w_rho = nn.Parameter(torch.full((n_out, n_in), -4.0))
        self.b_mu = nn.Parameter(torch.zeros(n_out))
        self.b_rho = nn.Parameter(torch.full((n_out,), -4.0))

    @staticmethod
    def draw(mu, rho):
        return torch.normal(mu, F.softplus(rho))

    def forward(self, x):
        weight = self.draw(self.w_mu, self.w_rho)
        bias = self.draw(self.b_mu, self.b_rho)
        return F.linear(x, weight, bias)

    def kl(self):
        total = 0.0
        for mu, rho in ((self.w_mu, self.w_rho), (self.b_mu, self.b_rho)):
            std = F.softplus(rho)
            ratio = (std / self.prior_std) ** 2
            total = total + 0.5 * (ratio + (mu / self.prior_std) ** 2 - 1.0 - ratio.log()).sum()
        return total


class DoseNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inp = VariationalLinear(1, width)
        self.mid = VariationalLinear(width, width)
        self.calibrate = nn.Linear(width, 1)  # deterministic read-out

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        h = torch.tanh(self.mid(h))
        return self.calibrate(h)

    def kl(self):
        return self.inp.kl() + self.mid.kl()


dose = torch.rand(N_TRAIN, 1) * 4.0 - 2.0
effect = response(dose) + NOISE * torch.randn(N_TRAIN, 1)

net = DoseNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)

for step in range(STEPS):
    idx = torch.randint(0, N_TRAIN, (BATCH,))
    pred = net(dose[idx])
    log_lik = torch.distributions.Normal(pred, NOISE).log_prob(effect[idx]).mean()
    loss = -log_lik + net.kl() / N_TRAIN  # ELBO per patient

    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if (step + 1) % 300 == 0:
        print(f"step {step + 1:5d}  log-lik {log_lik.item():8.3f}  KL {net.kl().item():8.1f}")

net.eval()
grid = torch.linspace(-2.0, 2.0, 201).unsqueeze(1)
with torch.no_grad():
    draws = torch.stack([net(grid) for _ in range(64)])
mean, spread = draws.mean(0), draws.std(0)
rmse = (mean - response(grid)).pow(2).mean().sqrt().item()
print(f"curve RMSE {rmse:.3f}  mean predictive spread {spread.mean().item():.3f}")
