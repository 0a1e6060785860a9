"""Multi-task audio tagging (event, loudness, speaker age group) with gradient surgery (PCGrad).

Conflicting task gradients on the shared trunk are projected onto each other's normal plane;
each head gets the gradient of its own task only.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)

SAMPLES, FRAME, EVENTS, AGES = 512, 32, 5, 3


def clips(n):
    t = torch.arange(SAMPLES) / SAMPLES
    event = torch.randint(0, EVENTS, (n,))
    age = torch.randint(0, AGES, (n,))
    loud = torch.rand(n) * 2 - 1
    pitch = 20.0 + 18.0 * event + 4.0 * age + torch.rand(n)
    carrier = torch.sin(2 * math.pi * pitch[:, None] * t + 6.28 * torch.rand(n, 1))
    tremor = 1 + 0.5 * torch.sin(2 * math.pi * (3 + 3 * age)[:, None] * t)
    wave = torch.exp(loud)[:, None] * carrier * tremor + 0.1 * torch.randn(n, SAMPLES)
    spectrum = torch.fft.rfft(wave.view(n, -1, FRAME * 4) * torch.hann_window(FRAME * 4)).abs()
    return torch.log1p(spectrum).flatten(1), {"event": event, "age": age, "loud": loud}


class Tagger(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict(
            {"event": nn.Linear(width, EVENTS), "age": nn.Linear(width, AGES), "loud": nn.Linear(width, 1)}
        )

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def task_losses(out, y):
    return {
        "event": F.cross_entropy(out["event"], y["event"]),
        "age": F.cross_entropy(out["age"], y["age"]),
        "loud": F.mse_loss(out["loud"].squeeze(1), y["loud"]),
    }


def project(grads):
    """PCGrad: remove from every task gradient what opposes another task, in random order."""
    merged = []
    for i, g in enumerate(grads):
        g = g.clone()
        for j in torch.randperm(len(grads)).tolist():
            if j != i:
                dot = g @ grads[j]
                if dot < 0:
                    g -= dot / grads[j].dot(grads[j]).clamp(min=1e-12) * grads[j]
        merged.append(g)
    return torch.stack(merged).sum(0)


def set_gradients(model, losses):
    trunk = list(model.trunk.parameters())
    trunk_grads = []
    for name, loss in losses.items():
        head = list(model.heads[name].parameters())
        grads = torch.autograd.grad(loss, trunk + head, retain_graph=True)
        trunk_grads.append(torch.cat([g.flatten() for g in grads[: len(trunk)]]))
        for p, g in zip(head, grads[len(trunk):]):
            p.grad = g
    for p, g in zip(trunk, project(trunk_grads).split([p.numel() for p in trunk])):
        p.grad = g.view_as(p)


x_train, y_train = clips(2500)
x_test, y_test = clips(500)
mean, std = x_train.mean(0), x_train.std(0)
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std

model = Tagger(x_train.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(8):
    for idx in torch.randperm(len(x_train)).split(64):
        losses = task_losses(model(x_train[idx]), {k: v[idx] for k, v in y_train.items()})
        set_gradients(model, losses)
        optimizer.step()
    with torch.no_grad():
        out = model(x_test)
        event = (out["event"].argmax(1) == y_test["event"]).float().mean().item()
        age = (out["age"].argmax(1) == y_test["age"]).float().mean().item()
        loud = (out["loud"].squeeze(1) - y_test["loud"]).abs().mean().item()
    print(f"epoch {epoch}  event {event:.3f}  age {age:.3f}  loudness error {loud:.3f}")
