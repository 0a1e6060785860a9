"""Gradient descent by hand, in place and under no_grad, with gradients zeroed in place."""

import torch

torch.manual_seed(24)
weights = [torch.randn(2, 6, requires_grad=True), torch.randn(6, 1, requires_grad=True)]
velocity = [torch.zeros_like(w) for w in weights]
x = torch.randn(10, 2)
y = x.prod(1, keepdim=True)
first = last = None
for _ in range(4):
    loss = (torch.tanh(x @ weights[0]) @ weights[1] - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for weight, speed in zip(weights, velocity):
            speed.mul_(0.5).add_(weight.grad)
            weight -= 0.02 * speed
            weight.grad.zero_()
    first, last = first or loss.item(), loss.item()
print(last < first)
