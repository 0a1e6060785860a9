"""Test-time adaptation of a smart-meter classifier to a drifted stream (Tent: entropy, normalisation layers only)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, LENGTH = 4, 48


class TraceNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, width, 5, padding=2, bias=False)
        self.bn1 = nn.BatchNorm1d(width)
        self.conv2 = nn.Conv1d(width, 2 * width, 5, padding=2, bias=False)
        self.bn2 = nn.BatchNorm1d(2 * width)
        self.head = nn.Linear(8 * width, CLASSES)

    def forward(self, x):
        h = F.max_pool1d(F.relu(self.bn1(self.conv1(x))), 2)
        h = F.relu(self.bn2(self.conv2(h)))
        return self.head(F.adaptive_avg_pool1d(h, 4).flatten(1))


def traces(n, drift):
    label = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    freq = torch.tensor([2.0, 3.0, 5.0, 7.0])[label][:, None]
    phase = 2 * math.pi * torch.rand(n, 1)
    x = torch.sin(2 * math.pi * freq * t + phase).sign() + 0.4 * torch.randn(n, LENGTH)
    if drift:
        x = 1.5 + 0.5 * x + 0.3 * torch.sin(2 * math.pi * t) + 0.4 * torch.randn(n, LENGTH)
    return x[:, None], label


def train_source(model, x, y, steps=80):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        i = torch.randint(0, x.shape[0], (48,))
        loss = F.cross_entropy(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def configure(model):
    """Batch statistics instead of the stored ones; gradients for scale and shift only."""
    model.train()
    model.requires_grad_(False)
    affine = []
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.track_running_stats = False
            module.running_mean = None
            module.running_var = None
            module.requires_grad_(True)
            affine += [module.weight, module.bias]
    return affine


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


def adapt_stream(model, x, y, batch=60):
    """Each batch is predicted once and used for one update; labels serve for the score only."""
    optimizer = torch.optim.Adam(configure(model), lr=5e-3)
    hits, first, last = [], None, None
    for bx, by in zip(x.split(batch), y.split(batch)):
        logits = model(bx)
        loss = entropy(logits).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        hits.append((logits.detach().argmax(1) == by).float().mean().item())
        first = loss.item() if first is None else first
        last = loss.item()
    return hits, first, last


def main():
    torch.manual_seed(4)
    x_src, y_src = traces(600, drift=False)
    x_new, y_new = traces(1500, drift=True)
    model = TraceNet()
    loss = train_source(model, x_src, y_src)
    print(f"source loss {loss:.3f}  accuracy source {accuracy(model, x_src, y_src):.3f}")
    plain = accuracy(model, x_new, y_new)
    hits, first, last = adapt_stream(model, x_new, y_new)
    third = len(hits) // 3
    print(f"stream: fixed model {plain:.3f}")
    print(f"stream: adapted {sum(hits) / len(hits):.3f}  first third {sum(hits[:third]) / third:.3f}"
          f"  last third {sum(hits[-third:]) / third:.3f}  entropy {first:.3f} -> {last:.3f}")
    return model


if __name__ == "__main__":
    model = main()
