"""Domain-adversarial vowel recognition (Ganin et al. 2016): studio recordings with labels, phone recordings without.

A vowel is a spectral envelope; the phone line adds a tilt, a hum and a different noise floor to it.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOWELS, BINS = 6, 40


def record(n, phone, gen):
    formants = 36 * torch.rand(VOWELS, 3, generator=torch.Generator().manual_seed(17)) + 2
    vowel = torch.randint(0, VOWELS, (n,), generator=gen)
    centre = formants[vowel] + 0.9 * torch.randn(n, 3, generator=gen)
    axis = torch.arange(BINS, dtype=torch.float32)
    spectrum = torch.exp(-0.5 * ((axis - centre.unsqueeze(-1)) / 1.8) ** 2).sum(1)
    noise = 0.3 * torch.randn(n, BINS, generator=gen)
    if phone:
        line = 1.2 * torch.sin(axis / 3.0) + 0.8 * (axis / BINS - 0.5)
        spectrum = 0.9 * spectrum + line + 0.2 * torch.randn(n, 1, generator=gen)
    return spectrum + noise, vowel


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class VowelNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(BINS, 96), nn.ReLU(), nn.Linear(96, width), nn.ReLU())
        self.vowel = nn.Linear(width, VOWELS)
        self.domain = nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x, strength=0.0):
        h = self.features(x)
        return self.vowel(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


@torch.no_grad()
def accuracy(net, x, y):
    return (net(x)[0].argmax(1) == y).float().mean().item()


def train(adversarial, steps=700, batch=64):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    x_studio, y_studio = record(1200, phone=False, gen=gen)
    x_phone, _ = record(1200, phone=True, gen=gen)
    x_test, y_test = record(1000, phone=True, gen=gen)

    net = VowelNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    is_phone = torch.cat([torch.zeros(batch), torch.ones(batch)])
    for step in range(steps):
        progress = step / steps
        strength = 2.0 / (1.0 + math.exp(-8.0 * progress)) - 1.0 if adversarial else 0.0
        i = torch.randint(0, len(x_studio), (batch,), generator=gen)
        j = torch.randint(0, len(x_phone), (batch,), generator=gen)
        vowel_logits, domain_logit = net(torch.cat([x_studio[i], x_phone[j]]), strength)
        vowel_loss = F.cross_entropy(vowel_logits[:batch], y_studio[i])
        domain_loss = F.binary_cross_entropy_with_logits(domain_logit, is_phone)
        for group in optimizer.param_groups:
            group["lr"] = 0.03 / (1.0 + 10.0 * progress) ** 0.75
        optimizer.zero_grad()
        (vowel_loss + domain_loss).backward()
        optimizer.step()
        if step % 175 == 174:
            print(f"  step {step + 1:3d}  vowel {vowel_loss.item():.3f}  domain {domain_loss.item():.3f}  "
                  f"phone accuracy {accuracy(net, x_test, y_test):.3f}")
    return accuracy(net, x_test, y_test)


if __name__ == "__main__":
    print("source only")
    plain = train(adversarial=False)
    print("domain-adversarial")
    adapted = train(adversarial=True)
    print(f"phone accuracy {plain:.3f} -> {adapted:.3f}")
