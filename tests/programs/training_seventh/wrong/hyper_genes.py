"""Logistic regression on expression blocks with one penalty strength per block, tuned on a second split (one-step unroll)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BLOCKS, PER_BLOCK = 8, 25


class BlockRidge(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(BLOCKS, PER_BLOCK))
        self.bias = nn.Parameter(torch.zeros(()))
        self.log_strength = nn.Parameter(torch.full((BLOCKS,), -3.5))

    def score(self, x, weight=None, bias=None):
        weight = self.weight if weight is None else weight
        bias = self.bias if bias is None else bias
        return (x * weight).sum((1, 2)) + bias

    def penalty(self):
        return (self.log_strength.exp() * self.weight.square().sum(1)).sum()


def cohort(n, rng):
    x = rng.standard_normal((n, BLOCKS, PER_BLOCK))
    shared = rng.standard_normal((n, BLOCKS, 1))
    x = 0.9 * x + 0.5 * shared
    coef = np.zeros((BLOCKS, PER_BLOCK))
    coef[1] = np.linspace(-0.6, 0.6, PER_BLOCK)
    coef[4] = 0.35 * np.cos(np.arange(PER_BLOCK))
    p = 1 / (1 + np.exp(-(x * coef).sum((1, 2))))
    y = rng.random(n) < p
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Bilevel:
    def __init__(self, model, fit_set, tune_set, lr=0.3, hyper_lr=0.03):
        self.model, self.fit_set, self.tune_set = model, fit_set, tune_set
        self.inner = torch.optim.SGD(model.parameters(), lr=lr)
        self.outer = torch.optim.Adam([model.log_strength], lr=hyper_lr, betas=(0.5, 0.99))
        self.lr = lr

    def inner_loss(self):
        x, y = self.fit_set
        return F.binary_cross_entropy_with_logits(self.model.score(x), y) + self.model.penalty()

    def inner_step(self):
        loss = self.inner_loss()
        self.inner.zero_grad()
        loss.backward()
        self.inner.step()
        return loss.item()

    def outer_step(self):
        m = self.model
        gw, gb = torch.autograd.grad(self.inner_loss(), [m.weight, m.bias], create_graph=True)
        x, y = self.tune_set
        ahead = m.score(x, m.weight - self.lr * gw, m.bias - self.lr * gb)
        value = F.binary_cross_entropy_with_logits(ahead, y)
        m.log_strength.grad = torch.autograd.grad(value, m.log_strength)[0]
        self.outer.step()
        return value.item()

    def run(self, rounds, inner_per_round=20):
        for r in range(rounds):
            for _ in range(inner_per_round):
                fit = self.inner_step()
            tune = self.outer_step()
            if r % 24 == 0:
                print(f"round {r:4d}  fit {fit:.3f}  tune {tune:.3f}")


def evaluate(model, x, y):
    with torch.no_grad():
        s = model.score(x)
        return F.binary_cross_entropy_with_logits(s, y).item(), ((s > 0) == (y > 0)).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    rng = np.random.default_rng(20)
    fit_set, tune_set, test_set = cohort(150, rng), cohort(150, rng), cohort(1000, rng)
    model = BlockRidge()
    problem = Bilevel(model, fit_set, tune_set)
    problem.run(120)
    nll, acc = evaluate(model, *test_set)
    print(f"test log loss {nll:.3f}  accuracy {acc:.3f}")
    print("strengths", [round(v, 4) for v in model.log_strength.exp().tolist()])
