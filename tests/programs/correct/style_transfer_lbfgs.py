"""L-BFGS with a closure that is called several times a step."""

import torch

torch.manual_seed(10)
basis = torch.randn(6, 4)
goal = torch.randn(6)
point = torch.zeros(4, requires_grad=True)
optimizer = torch.optim.LBFGS([point], max_iter=8, line_search_fn="strong_wolfe")
calls = []


def closure():
    optimizer.zero_grad()
    loss = (basis @ point - goal).pow(2).sum() + 0.1 * point.abs().sum()
    loss.backward()
    calls.append(loss.item())
    return loss


for _ in range(2):
    optimizer.step(closure)
print(len(calls) > 2, calls[-1] < calls[0])
