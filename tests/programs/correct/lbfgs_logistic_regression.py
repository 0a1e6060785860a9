"""Logistic regression by L-BFGS without line search; the closure clears the gradients by hand."""

import torch

torch.manual_seed(9)
features = torch.randn(40, 3)
labels = (features @ torch.tensor([1.0, -2.0, 0.5]) > 0).float()
weight = torch.zeros(3, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.LBFGS([weight, bias], lr=0.5, max_iter=5)


def closure():
    for parameter in (weight, bias):
        parameter.grad = None
    logits = features @ weight + bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels) + 0.01 * weight.pow(2).sum()
    loss.backward()
    return loss


for _ in range(3):
    optimizer.zero_grad()
    loss = optimizer.step(closure)
    print(f"{loss.item():.4f}")
