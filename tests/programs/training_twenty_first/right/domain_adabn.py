"""Domain-adversarial training on two sensor domains, followed by AdaBN recalibration on the target domain."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
DIM, CLASSES, STEPS = 16, 4, 240
centres = 0.9 * torch.randn(CLASSES, DIM)
rotation = torch.linalg.qr(torch.eye(DIM) + 0.12 * torch.randn(DIM, DIM))[0]
rotation = rotation * torch.sign(torch.diagonal(rotation))
gain, offset = 0.5 + 1.5 * torch.rand(DIM), 1.2 * torch.randn(DIM)


def source(n):
    y = torch.randint(0, CLASSES, (n,))
    return centres[y] + 0.9 * torch.randn(n, DIM), y


def target(n):
    x, y = source(n)
    return (x @ rotation) * gain + offset, y


class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_in = nn.BatchNorm1d(DIM)
        self.fc1, self.bn1 = nn.Linear(DIM, 48), nn.BatchNorm1d(48)
        self.fc2, self.bn2 = nn.Linear(48, 24), nn.BatchNorm1d(24)

    def forward(self, x):
        h = F.relu(self.bn1(self.fc1(self.norm_in(x))))
        return F.relu(self.bn2(self.fc2(h)))


def reverse(features, strength):
    """Identity forward, minus `strength` times the gradient backward."""
    out = features.view_as(features)
    out.register_hook(lambda g: -strength * g)
    return out


def recalibrate(module, x, batch=100):
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d)]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    module.train()
    with torch.no_grad():
        for part in x.split(batch):
            module(part)
    module.eval()
    for m in norms:
        m.momentum = 0.1


def accuracy(x, y):
    extractor.eval()
    classifier.eval()
    with torch.no_grad():
        return (classifier(extractor(x)).argmax(1) == y).float().mean().item()


extractor = Extractor()
classifier = nn.Linear(24, CLASSES)
critic = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
params = [*extractor.parameters(), *classifier.parameters(), *critic.parameters()]
optimizer = torch.optim.SGD(params, lr=0.05, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: (1 + 10 * i / STEPS) ** -0.75)

for step in range(STEPS):
    extractor.train()
    classifier.train()
    strength = 0.3 * (2 / (1 + math.exp(-10 * step / STEPS)) - 1)
    xs, ys = source(64)
    xt, _ = target(64)
    # each domain is normalised by its own batch statistics
    fs, ft = extractor(xs), extractor(xt)
    label_loss = F.cross_entropy(classifier(fs), ys)
    guess = critic(reverse(torch.cat([fs, ft]), strength)).squeeze(1)
    side = torch.cat([torch.ones(64), torch.zeros(64)])
    domain_loss = F.binary_cross_entropy_with_logits(guess, side)
    optimizer.zero_grad()
    (label_loss + domain_loss).backward()
    optimizer.step()
    schedule.step()
    if (step + 1) % 60 == 0:
        print(f"step {step + 1}: label {label_loss.item():.3f}  domain {domain_loss.item():.3f}  strength {strength:.2f}")

xs_test, ys_test = source(800)
xt_test, yt_test = target(800)
adapt_x, _ = target(1000)
mixed = accuracy(xt_test, yt_test)
recalibrate(extractor, adapt_x)
adapted = accuracy(xt_test, yt_test)
recalibrate(extractor, source(1000)[0])
on_source = accuracy(xs_test, ys_test)
print(f"target accuracy with mixed statistics {mixed:.3f}")
print(f"target accuracy with target statistics {adapted:.3f}")
print(f"source accuracy with source statistics {on_source:.3f}")
