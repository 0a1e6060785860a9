import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(29)
SHOTS, QUERIES, INNER_STEPS = 10, 20, 4


class Regressor(nn.Module):
    def __init__(self, frequencies=24, width=40):
        super().__init__()
        self.register_buffer("frequency", torch.randn(1, frequencies) * 0.6)
        self.phase = nn.Parameter(torch.rand(frequencies) * 2 * math.pi, requires_grad=False)
        self.body = nn.Sequential(nn.Linear(frequencies, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(torch.cos(x @ self.frequency + self.phase)))


class Learner:
    """Only the head moves inside a task; its start, its step sizes and the body are meta-learnt."""

    def __init__(self, model):
        self.model = model
        self.fast_names = [name for name, _ in model.named_parameters() if name.startswith("head.")]
        self.log_rate = {name: torch.tensor(math.log(0.05), requires_grad=True) for name in self.fast_names}

    def adapt(self, x, y, second_order):
        every = dict(self.model.named_parameters())
        slow = {name: p for name, p in every.items() if name not in self.fast_names}
        fast = {name: every[name] for name in self.fast_names}
        if not second_order:
            slow = {name: p.detach() for name, p in slow.items()}
            fast = {name: p.detach().requires_grad_() for name, p in fast.items()}
        for _ in range(INNER_STEPS):
            loss = F.mse_loss(functional_call(self.model, {**slow, **fast}, (x,)), y)
            slopes = torch.autograd.grad(loss, list(fast.values()), create_graph=second_order)
            fast = {name: value - self.log_rate[name].exp() * slope
                    for (name, value), slope in zip(fast.items(), slopes)}
            if not second_order:
                fast = {name: value.detach().requires_grad_() for name, value in fast.items()}
        return {**slow, **fast}


def make_task():
    size, shift = 0.5 + 2 * torch.rand(()), math.pi * torch.rand(())
    x = torch.empty(SHOTS + QUERIES, 1).uniform_(-4, 4)
    y = size * torch.sin(x + shift)
    return x[:SHOTS], y[:SHOTS], x[SHOTS:], y[SHOTS:]


def evaluate(learner, tasks):
    before = after = 0.0
    for x, y, query, answer in tasks:
        adapted = learner.adapt(x, y, second_order=False)
        with torch.no_grad():
            before += F.mse_loss(learner.model(query), answer).item() / len(tasks)
            after += F.mse_loss(functional_call(learner.model, adapted, (query,)), answer).item() / len(tasks)
    return before, after


model = Regressor()
learner = Learner(model)
body_optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
rate_optimizer = torch.optim.Adam(learner.log_rate.values(), lr=1e-2)
held_out = [make_task() for _ in range(50)]
for iteration in range(250):
    body_optimizer.zero_grad()
    rate_optimizer.zero_grad()
    shown = 0.0
    for _ in range(4):
        x, y, query, answer = make_task()
        adapted = learner.adapt(x, y, second_order=True)
        loss = F.mse_loss(functional_call(model, adapted, (query,)), answer) / 4
        loss.backward()
        shown += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    body_optimizer.step()
    rate_optimizer.step()

before, after = evaluate(learner, held_out)
rates = ", ".join(f"{name} {rate.exp().item():.3f}" for name, rate in learner.log_rate.items())
print(f"meta loss {shown:.4f}  held-out error before {before:.3f}, after {after:.3f}  rates: {rates}")
