"""Domain-adversarial training with a gradient reversal Function and a ramped strength."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GradientReversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class DANN(nn.Module):
    def __init__(self, in_dim=10, hidden=40, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.classifier = nn.Linear(hidden, classes)
        self.domain = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.strength = 0.0

    def forward(self, x):
        h = self.features(x)
        reversed_h = GradientReversal.apply(h, self.strength)
        return self.classifier(h), self.domain(reversed_h).squeeze(1)


def ramp(progress):
    return 2 / (1 + math.exp(-6 * progress)) - 1


def make_domains(n, centers, shift):
    y_s = torch.randint(0, centers.size(0), (n,))
    y_t = torch.randint(0, centers.size(0), (n,))
    source = centers[y_s] + torch.randn(n, centers.size(1))
    target = centers[y_t] + torch.randn(n, centers.size(1)) + shift
    return source, y_s, target, y_t


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits, _ = model(x)
    model.train()
    return (logits.argmax(1) == y).float().mean().item()


def main(steps=400, batch=64):
    torch.manual_seed(13)
    centers = torch.randn(3, 10) * 1.5
    shift = torch.zeros(10)
    shift[7:] = 3.0
    xs, ys, xt, yt = make_domains(1000, centers, shift)
    model = DANN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(steps):
        model.strength = 0.3 * ramp(step / steps)
        i = torch.randint(0, 1000, (batch,))
        j = torch.randint(0, 1000, (batch,))
        class_s, dom_s = model(xs[i])
        _, dom_t = model(xt[j])
        class_loss = F.cross_entropy(class_s, ys[i])
        dom = torch.cat([dom_s, dom_t])
        dom_target = torch.cat([torch.ones(batch), torch.zeros(batch)])
        domain_loss = F.binary_cross_entropy_with_logits(dom, dom_target)
        loss = class_loss + domain_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step} class {class_loss.item():.3f} domain {domain_loss.item():.3f} "
                  f"target accuracy {evaluate(model, xt, yt):.3f}")


if __name__ == "__main__":
    main()
