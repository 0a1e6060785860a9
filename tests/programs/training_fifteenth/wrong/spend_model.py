"""Expected spend per visit with a factorised model, trained with a hand-written AMSGrad (as in our old optax setup).

Few visitors buy, and the rows of those who do carry very large gradients. AMSGrad keeps the largest second moment
seen so far, so that the many small gradients between two purchases are not scaled up.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer

torch.manual_seed(3)


class AMSGrad(Optimizer):
    """AMSGrad with decoupled weight decay."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["mu"] = torch.zeros_like(p)
                    state["nu"] = state["nu_max"] = torch.zeros_like(p)
                state["step"] += 1
                t = state["step"]
                state["mu"].lerp_(p.grad, 1 - beta1)
                state["nu"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                torch.maximum(state["nu_max"], state["nu"], out=state["nu_max"])
                mu_hat = state["mu"] / (1 - beta1 ** t)
                nu_hat = state["nu_max"] / (1 - beta2 ** t)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(mu_hat, nu_hat.sqrt().add_(group["eps"]), value=-group["lr"])


class FactorModel(nn.Module):
    """Per-field weights plus a factorisation term over the fields."""

    def __init__(self, n_fields, rank=4):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.linear = nn.Parameter(torch.zeros(n_fields))
        self.factors = nn.Parameter(0.05 * torch.randn(n_fields, rank))

    def forward(self, x):
        cross = (x @ self.factors).pow(2) - x.pow(2) @ self.factors.pow(2)
        return self.bias + x @ self.linear + 0.5 * cross.sum(dim=1)


FIELDS = 12
BUY_RATE = 0.03
true_linear = 0.5 * torch.rand(FIELDS)
true_factors = 0.25 * torch.rand(FIELDS, 3)


def make_rows(n):
    """Spend per visit: nearly always zero, and large when the visitor buys; `value` is its expectation."""
    x = (torch.rand(n, FIELDS) < 0.4).float() * (0.5 + torch.rand(n, FIELDS))
    value = x @ true_linear
    value = value + 0.5 * ((x @ true_factors).pow(2) - x.pow(2) @ true_factors.pow(2)).sum(1)
    buys = (torch.rand(n) < BUY_RATE).float()
    return x, buys * value / BUY_RATE, value


train_x, train_y, _ = make_rows(20000)
test_x, _, test_value = make_rows(2000)

model = FactorModel(FIELDS)
optimizer = AMSGrad(model.parameters(), lr=0.02, betas=(0.9, 0.95), weight_decay=1e-4)
losses = []
for step in range(5000):
    idx = torch.randint(len(train_x), (4,))
    loss = F.mse_loss(model(train_x[idx]), train_y[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (step + 1) % 1000 == 0:
        print(f"step {step + 1}: mean batch loss {sum(losses[-1000:]) / 1000:.3f}")

with torch.no_grad():
    prediction = model(test_x)
    rmse = math.sqrt(F.mse_loss(prediction, test_value).item())
print(f"mean prediction {prediction.mean():.3f}, mean expected spend {test_value.mean():.3f}, rmse {rmse:.3f}")
