"""Keyword spotting on synthetic log-mel features, with a penalty on the activity of the hidden layers."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
WORDS, MELS, FRAMES = 8, 20, 32


def make_commands(count):
    label = torch.randint(0, WORDS, (count,))
    start = 3 + 2.0 * (label % 4)
    slope = torch.where(label < 4, 0.25, 0.1)
    t = torch.arange(FRAMES)
    track = start[:, None] + slope[:, None] * t + torch.randn(count, 1) * 0.6
    bands = torch.arange(MELS)[None, :, None]
    mel = torch.exp(-0.5 * ((bands - track[:, None, :]) / 1.2) ** 2)
    burst = (t > torch.randint(0, 8, (count, 1))).float()
    return mel * burst[:, None] * 2 + 0.5 * torch.randn(count, MELS, FRAMES), label


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.depth = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation, groups=width)
        self.point = nn.Conv1d(width, width, 1)
        self.norm = nn.BatchNorm1d(width)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.norm(self.point(self.depth(x))))


class Spotter(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inlet = nn.Conv1d(MELS, width, 1)
        self.blocks = nn.Sequential(*(Block(width, d) for d in (1, 2, 4)))
        self.outlet = nn.Linear(width, WORDS)

    def forward(self, mel):
        return self.outlet(self.blocks(self.inlet(mel)).mean(-1))


class ActivityPenalty:
    """Collects the mean absolute output of every activation during a forward pass."""

    def __init__(self, weight):
        self.weight = weight
        self.terms = []

    def attach(self, model):
        for module in model.modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(self.record)

    def record(self, module, inputs, output):
        if module.training:
            self.terms.append(output.abs().mean())

    def pop(self):
        value = self.weight * torch.stack(self.terms).sum()
        self.terms.clear()
        return value


def run_epoch(model, opt, penalty, mel, label, batch=64):
    model.train()
    penalty.attach(model)
    seen = 0.0
    for idx in torch.randperm(len(mel)).split(batch):
        loss = F.cross_entropy(model(mel[idx]), label[idx])
        opt.zero_grad()
        (loss + penalty.pop()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        seen += loss.item() * len(idx)
    return seen / len(mel)


@torch.no_grad()
def accuracy(model, mel, label):
    model.eval()
    return (model(mel).argmax(1) == label).float().mean().item()


model = Spotter()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
penalty = ActivityPenalty(weight=0.05)
train_set, test_set = make_commands(512), make_commands(256)
history = []
for epoch in range(16):
    for group in opt.param_groups:
        group["lr"] = 2e-3 * 0.5 * (1 + math.cos(math.pi * epoch / 16))
    history.append(run_epoch(model, opt, penalty, *train_set))
print(f"train loss {history[0]:.3f} -> {history[-1]:.3f}  test accuracy {accuracy(model, *test_set):.3f}")
