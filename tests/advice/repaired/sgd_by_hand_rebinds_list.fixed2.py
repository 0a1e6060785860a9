"""expect: element-does-not-require-grad

Gradient descent by hand, whose second step starts from tensors that nobody asked gradients of.
"""

import torch


def initial(sizes):
    weights = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        weights.append(torch.randn(fan_in, fan_out, requires_grad=True))  # role: leaf_made_here
    return weights


def forward(weights, x):
    for weight in weights[:-1]:
        x = torch.tanh(x @ weight)
    return x @ weights[-1]


def descend(weights, rate):
    with torch.no_grad():  # role: grad_mode_off_here
        for weight in weights:
            weight -= rate * weight.grad
            weight.grad = None
    return weights


torch.manual_seed(26)
weights = initial([2, 6, 1])
x = torch.randn(10, 2)
y = x.prod(1, keepdim=True)
for epoch in range(4):
    loss = (forward(weights, x) - y).pow(2).mean()
    loss.backward()  # role: needed_here
    weights = descend(weights, 0.1)
    print(epoch, "descended")
