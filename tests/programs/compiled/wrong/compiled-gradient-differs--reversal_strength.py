"""Domain-adversarial training: the strength of the gradient reversal is set between forward and backward."""

import torch
from torch import nn

schedule = {"strength": 1.0}


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -schedule["strength"] * gradient


torch.manual_seed(6)
features, domain = nn.Linear(5, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*features.parameters(), *domain.parameters()], lr=0.1)
data, source = torch.randn(16, 5), torch.randint(2, (16, 1)).float()


@torch.compile(backend="aot_eager")  # role: compiled_here
def domain_loss(x, y):  # role: function_defined_here
    guess = domain(Reverse.apply(features(x).tanh()))
    return nn.functional.binary_cross_entropy_with_logits(guess, y)


for epoch in range(3):
    optimizer.zero_grad()
    loss = domain_loss(data, source)
    schedule["strength"] = 0.5 ** (epoch + 1)
    loss.backward()  # role: needed_here
    optimizer.step()
