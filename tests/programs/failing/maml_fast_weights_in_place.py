"""expect: saved-tensor-modified-inplace

The inner loop of a meta-learner moves its fast weights in place, and the outer loop differentiates through it.
"""

import torch
from torch import nn


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(1, 8) * 0.5)
        self.b1 = nn.Parameter(torch.zeros(8))
        self.w2 = nn.Parameter(torch.randn(8, 1) * 0.5)

    def fast(self):
        return [p.clone() for p in self.parameters()]


def predict(x, weights):
    w1, b1, w2 = weights
    hidden = torch.tanh(x @ w1 + b1)  # role: saved_here
    return hidden @ w2  # role: saved_here


def mse(prediction, target):
    return (prediction - target).pow(2).mean()


def adapt(weights, x, y, rate=0.1, steps=2):
    for _ in range(steps):
        loss = mse(predict(x, weights), y)
        grads = torch.autograd.grad(loss, weights, create_graph=True)  # role: saved_here
        for weight, grad in zip(weights, grads):
            weight.sub_(rate * grad)  # role: modified_here
    return weights


torch.manual_seed(14)
learner = Learner()
meta = torch.optim.Adam(learner.parameters(), lr=1e-2)
x = torch.linspace(-1, 1, 6)[:, None]
outer = 0.0
for phase in (0.0, 1.0):
    y = torch.sin(3 * x + phase)
    adapted = adapt(learner.fast(), x[:3], y[:3])
    outer = outer + mse(predict(x[3:], adapted), y[3:])
meta.zero_grad()
outer.backward()  # role: needed_here
meta.step()
