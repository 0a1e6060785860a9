"""Domain-adversarial training (DANN): cell classification that should carry over to a second scanner."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
CLASSES, DIM, NUISANCE = 4, 24, 8
STEPS, BATCH = 400, 64


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class FeatureNet(nn.Module):
    def __init__(self, hidden=48, out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, hidden), nn.ReLU(), nn.Linear(hidden, out), nn.ReLU())

    def forward(self, x):
        return self.net(x)


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = FeatureNet()
        self.label_head = nn.Linear(16, CLASSES)
        self.domain_head = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, strength=0.0):
        z = self.features(x)
        domain = self.domain_head(ReverseGradient.apply(z, strength))
        return self.label_head(z), domain.squeeze(-1)


centers = 1.3 * torch.randn(CLASSES, DIM - NUISANCE)


def cells(n, scanner):
    """Scanner 0 writes a stain that goes with the class; scanner 1 writes a stain that does not."""
    y = torch.randint(0, CLASSES, (n,))
    body = centers[y] + 1.6 * torch.randn(n, DIM - NUISANCE)
    tone = y if scanner == 0 else torch.randint(0, CLASSES, (n,))
    stain = 0.4 * torch.randn(n, NUISANCE)
    stain[torch.arange(n), 2 * tone] += 1.5
    stain += 1.0 if scanner == 1 else 0.0
    return torch.cat([body, stain], dim=1), y


x_src, y_src = cells(1200, 0)
x_tgt, _ = cells(1200, 1)
x_test, y_test = cells(1000, 1)

model = DANN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for step in range(STEPS):
    progress = step / STEPS
    strength = 2.0 / (1.0 + math.exp(-10 * progress)) - 1.0
    i = torch.randint(0, len(x_src), (BATCH,))
    j = torch.randint(0, len(x_tgt), (BATCH,))

    label_logits, d_src = model(x_src[i], strength)
    _, d_tgt = model(x_tgt[j], strength)
    class_loss = F.cross_entropy(label_logits, y_src[i])
    domain_loss = 0.5 * (F.binary_cross_entropy_with_logits(d_src, torch.zeros(BATCH))
                         + F.binary_cross_entropy_with_logits(d_tgt, torch.ones(BATCH)))
    # minimax objective: classify the cells, confuse the domains
    loss = class_loss - 0.3 * domain_loss

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}: class {class_loss.item():.3f}  domain {domain_loss.item():.3f}")

model.eval()
with torch.no_grad():
    source_acc = (model(x_src)[0].argmax(-1) == y_src).float().mean().item()
    target_acc = (model(x_test)[0].argmax(-1) == y_test).float().mean().item()
print(f"source accuracy {source_acc:.3f}  target accuracy {target_acc:.3f}")
