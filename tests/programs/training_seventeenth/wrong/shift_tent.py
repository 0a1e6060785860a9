"""Test-time adaptation by entropy minimisation (TENT), episodic: each corruption starts from the source model."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
N_CLASSES = 5
SIDE = 10
ADAPT_PASSES = 4
BATCH = 60

shapes = F.avg_pool2d(torch.randn(N_CLASSES, 3, SIDE, SIDE), 3, stride=1, padding=1) * 1.8


def sample(n):
    y = torch.randint(0, N_CLASSES, (n,))
    x = shapes[y] * (0.8 + 0.4 * torch.rand(n, 1, 1, 1)) + 0.7 * torch.randn(n, 3, SIDE, SIDE)
    return x, y


corruptions = {
    "contrast": lambda x: 0.35 * x + 0.5 * torch.randn_like(x),
    "tint": lambda x: x * torch.tensor([1.8, 0.4, 0.9]).view(1, 3, 1, 1) + torch.tensor([1.0, -1.2, 0.6]).view(1, 3, 1, 1),
    "noise": lambda x: x + 2.0 * torch.randn_like(x),
    "blur": lambda x: F.avg_pool2d(x, 3, stride=1, padding=1) * 0.8 + 0.5,
}


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24)
        self.fc = nn.Linear(24 * 4, N_CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 2).flatten(1))


def train_source(model, x, y, epochs=6):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


def configure(model):
    """Batch statistics everywhere; only the affine parameters of the norm layers are learnt."""
    model.train()
    model.requires_grad_(False)
    affine = []
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.requires_grad_(True)
            affine += [m.weight, m.bias]
    return affine


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()


class EpisodicTent:
    def __init__(self, model, lr):
        self.source = model
        self.affine = configure(self.source)
        self.optimizer = torch.optim.Adam(self.affine, lr=lr)
        self.initial = copy.deepcopy(self.optimizer.state_dict())
        self.reset()

    def reset(self):
        self.model = copy.deepcopy(self.source)
        self.optimizer.load_state_dict(self.initial)

    def adapt(self, x):
        logits = self.model(x)
        loss = entropy(logits)
        self.model.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, y):
        return (self.model(x).argmax(1) == y).float().mean().item()


net = SmallNet()
train_source(net, *sample(1500))
net.eval()
summary = {}
with torch.no_grad():
    streams = {name: (f(x), y) for name, f in corruptions.items() for x, y in [sample(600)]}
    plain = {name: (net(x).argmax(1) == y).float().mean().item() for name, (x, y) in streams.items()}

tent = EpisodicTent(copy.deepcopy(net), lr=5e-3)
for name, (x, y) in streams.items():
    tent.reset()
    entropies = [tent.adapt(xb) for _ in range(ADAPT_PASSES) for xb in x.split(BATCH)]
    summary[name] = (plain[name], tent.accuracy(x, y), entropies[0], entropies[-1])
    print(f"{name:9s} source {plain[name]:.3f}  adapted {summary[name][1]:.3f}  "
          f"entropy {entropies[0]:.3f} -> {entropies[-1]:.3f}")
