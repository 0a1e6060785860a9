import math

import torch
from torch import nn
from torch.autograd import Function


class FlipGradient(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class DomainNet(nn.Module):
    def __init__(self, inputs, hidden=24):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.label = nn.Linear(hidden, 2)
        self.domain = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x, strength):
        h = self.features(x)
        return self.label(h), self.domain(FlipGradient.apply(h, strength)).squeeze(1)


def scans(n, scanner):
    x = torch.randn(n, 6)
    y = (x[:, 0] + x[:, 1] > 0).long()
    x[:, 5] += 2.0 * scanner
    return x, y


def ramp(step, total):
    return 2 / (1 + math.exp(-8 * step / total)) - 1


def train(steps=100):
    model = DomainNet(6)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        (xs, ys), (xt, _) = scans(32, 0), scans(32, 1)
        labels, domains = model(torch.cat([xs, xt]), ramp(step + 1, steps))
        origin = torch.cat([torch.zeros(32), torch.ones(32)])
        label_loss = nn.functional.cross_entropy(labels[:32], ys)
        domain_loss = nn.functional.binary_cross_entropy_with_logits(domains, origin)
        loss = label_loss + domain_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1} label {label_loss.item():.4f} domain {domain_loss.item():.4f}")
    return model


torch.manual_seed(121)
model = train()
with torch.no_grad():
    x, y = scans(300, 1)
    print(f"accuracy on the new scanner {(model(x, 0.0)[0].argmax(1) == y).float().mean():.3f}")
