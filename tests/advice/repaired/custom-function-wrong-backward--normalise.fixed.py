"""A fused normalisation whose backward forgets that the variance depends on its input."""
import torch
from torch import nn


class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        mean = x.mean(-1, keepdim=True)
        scale = (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        normal = (x - mean) * scale
        ctx.save_for_backward(normal, scale, weight)
        return normal * weight

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, weight = ctx.saved_tensors
        inner = gradient * weight
        given = (inner - inner.mean(-1, keepdim=True) - normal * (inner * normal).mean(-1, keepdim=True)) * scale
        return given, (gradient * normal).sum(0), None  # role: returned_here


torch.manual_seed(0)
first, last = nn.Linear(4, 6), nn.Linear(6, 1)
weight = nn.Parameter(torch.ones(6))
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters(), weight], lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
for step in range(3):
    loss = (last(torch.relu(Normalise.apply(first(x), weight, 1e-5))) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
print("done")
