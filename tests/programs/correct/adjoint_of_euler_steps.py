"""A small neural differential equation: forward without a graph, backward by going through the steps once more."""

import torch
from torch import nn


class Euler(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, steps, start, *parameters):
        states = [start]
        with torch.no_grad():
            for _ in range(steps):
                states.append(states[-1] + field(states[-1]) / steps)
        ctx.field, ctx.steps, ctx.count = field, steps, len(parameters)
        ctx.save_for_backward(*states[:-1], *parameters)
        return states[-1].clone()

    @staticmethod
    def backward(ctx, gradient):
        states, parameters = ctx.saved_tensors[: ctx.steps], ctx.saved_tensors[ctx.steps :]
        sums = [torch.zeros_like(p) for p in parameters]
        for state in reversed(states):
            with torch.enable_grad():
                state = state.detach().requires_grad_()
                moved = state + ctx.field(state) / ctx.steps
            gradient, *parts = torch.autograd.grad(moved, (state, *parameters), gradient)
            sums = [total + part for total, part in zip(sums, parts)]
        return None, None, gradient, *sums


torch.manual_seed(6)
field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
read = nn.Linear(2, 1)
optimizer = torch.optim.Adamax([*field.parameters(), *read.parameters()], lr=1e-2)
points = torch.randn(60, 2)
inside = (points.norm(dim=1) < 1).float()
best = float("inf")
for epoch in range(12):
    optimizer.zero_grad()
    end = Euler.apply(field, 5, points, *field.parameters())
    loss = nn.functional.binary_cross_entropy_with_logits(read(end).squeeze(1), inside)
    loss.backward()
    optimizer.step()
    best = min(best, loss.item())
print(best < 1)
