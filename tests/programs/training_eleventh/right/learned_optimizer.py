"""Learning to learn by gradient descent: a small LSTM that proposes the updates for random quadratic-plus-cosine problems."""
import math

import torch
import torch.nn as nn

SEED = 8
DIM, HIDDEN = 8, 16
UNROLL, HORIZON = 10, 40
META_EPOCHS = 45
PROBLEMS = 8  # optimizees that run side by side

torch.manual_seed(SEED)


class Problem:
    """f(w) = |A w - b|^2 / n + 0.3 (1 - cos w), one row of w per problem of the batch."""

    def __init__(self, n=PROBLEMS):
        self.a = torch.randn(n, DIM, DIM) / math.sqrt(DIM)
        self.b = torch.randn(n, DIM)

    def __call__(self, w):
        residual = torch.einsum("pij,pj->pi", self.a, w) - self.b
        return residual.pow(2).mean(1) + 0.3 * (1 - torch.cos(w)).mean(1)


class UpdateRule(nn.Module):
    """Works on each coordinate by itself: (log size, direction) of its gradient -> step."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(2, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.out.bias)

    def features(self, g):
        size = (g.abs().clamp_min(1e-6).log() / 7).clamp(-1, 1)
        return torch.stack([size, torch.sign(g)], dim=-1)

    def forward(self, g, state):
        h, c = self.cell(self.features(g).flatten(0, 1), state)
        return 0.1 * self.out(h).view_as(g), (h, c)

    def start(self, n):
        return torch.zeros(n * DIM, HIDDEN), torch.zeros(n * DIM, HIDDEN)


def gradient(problem, w):
    """Gradient of the problem at w; a plain number for the update rule."""
    w = w.detach().requires_grad_(True)
    return torch.autograd.grad(problem(w).sum(), w)[0]


def train_horizon(rule, meta_opt):
    problem = Problem()
    w, state = torch.zeros(PROBLEMS, DIM), rule.start(PROBLEMS)
    with torch.no_grad():
        initial = problem(w)
    meta_loss = 0.0
    for t in range(1, HORIZON + 1):
        g = gradient(problem, w)
        step, state = rule(g, state)
        w = w + step
        meta_loss = meta_loss + (problem(w) / initial).mean()
        if t % UNROLL == 0:
            meta_opt.zero_grad()
            (meta_loss / UNROLL).backward()
            nn.utils.clip_grad_norm_(rule.parameters(), 1.0)
            meta_opt.step()
            w, state = w.detach(), tuple(s.detach() for s in state)
            meta_loss = 0.0
    return (problem(w) / initial).mean().item()


@torch.no_grad()
def evaluate(rule, problem):
    w, state = torch.zeros(len(problem.b), DIM), rule.start(len(problem.b))
    initial = problem(w)
    for _ in range(HORIZON):
        with torch.enable_grad():
            g = gradient(problem, w)
        step, state = rule(g, state)
        w = w + step
    return (problem(w) / initial).mean().item()


def baseline(problem, lr):
    w = torch.zeros(len(problem.b), DIM, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=lr)
    initial = problem(w).detach()
    for _ in range(HORIZON):
        optimizer.zero_grad()
        problem(w).sum().backward()
        optimizer.step()
    return (problem(w) / initial).mean().item()


held_out = Problem(64)
rule = UpdateRule()
meta_opt = torch.optim.Adam(rule.parameters(), lr=1e-2)
print(f"untrained rule: {evaluate(rule, held_out):.3f} of the initial loss")
for epoch in range(META_EPOCHS):
    ratio = train_horizon(rule, meta_opt)
    if epoch % 15 == 14:
        print(f"meta epoch {epoch + 1}: {ratio:.3f}")
print(f"trained rule: {evaluate(rule, held_out):.3f}")
print("plain descent: " + ", ".join(f"lr {lr} -> {baseline(held_out, lr):.3f}" for lr in (0.1, 0.3, 1.0)))
