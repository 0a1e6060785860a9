"""Features that tell classes and hide domains: a reversed gradient whose strength grows, one optimizer for each part."""

import math

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg() * ctx.strength, None


torch.manual_seed(3)
features = nn.Sequential(nn.Linear(5, 20), nn.Tanh())
classes, domains = nn.Linear(20, 3), nn.Sequential(nn.Linear(20, 10), nn.LeakyReLU(0.2), nn.Linear(10, 1))
parts = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, nesterov=True) for m in (features, classes, domains)]
rates = [torch.optim.lr_scheduler.LambdaLR(o, lambda n: (1 + 0.1 * n) ** -0.75) for o in parts]
source, target = torch.randn(90, 5), torch.randn(90, 5) + 0.7
labels = source[:, :3].argmax(1)
log = []
for step in range(25):
    strength = 2 / (1 + math.exp(-step / 5)) - 1
    rows = torch.randint(90, (30,))
    near, far = features(source[rows]), features(target[rows])
    class_loss = nn.functional.cross_entropy(classes(near), labels[rows])
    both = Reverse.apply(torch.cat([near, far]), strength)
    guess = domains(both).squeeze(1)
    domain_loss = nn.functional.binary_cross_entropy_with_logits(guess, torch.arange(60).lt(30).float())
    for optimizer in parts:
        optimizer.zero_grad()
    (class_loss + domain_loss).backward()
    for optimizer, rate in zip(parts, rates):
        optimizer.step()
        rate.step()
    log.append((class_loss.item(), float(domain_loss.detach())))
print(len(log), log[-1][0] < 3)
