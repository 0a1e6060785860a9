"""Three predictions from one encoder of vital signs, with projected gradients where the tasks disagree (PCGrad)."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)
random.seed(29)

SIGNALS, STEPS, TASKS = 6, 32, ("mortality", "stay", "ward")


def make_patients(n, generator):
    severity = torch.randn(n, 1, 1, generator=generator)
    trend = torch.randn(n, SIGNALS, 1, generator=generator)
    time = torch.linspace(0, 1, STEPS)
    noise = 0.7 * torch.randn(n, SIGNALS, STEPS, generator=generator)
    series = severity * torch.sin(6 * time) + trend * time + noise
    sick = severity.flatten() + trend[:, 0, 0] - trend[:, 1, 0]
    mortality = torch.bernoulli(torch.sigmoid(1.5 * sick - 1), generator=generator)
    stay = 2.0 + F.softplus(1.2 * severity.flatten() - trend[:, 2, 0]) + 0.2 * torch.randn(n, generator=generator)
    ward = trend[:, 3:, 0].argmax(1)
    return series, {"mortality": mortality, "stay": stay, "ward": ward}


class VitalsNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(SIGNALS, width, 5, stride=2), nn.ReLU(), nn.Conv1d(width, width, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Linear(2 * width, width), nn.ReLU(),
        )
        self.heads = nn.ModuleDict({"mortality": nn.Linear(width, 1), "stay": nn.Linear(width, 1),
                                    "ward": nn.Linear(width, SIGNALS - 3)})

    def forward(self, series):
        h = self.encoder(series)
        return {task: head(h) for task, head in self.heads.items()}


def task_losses(out, target):
    return {
        "mortality": F.binary_cross_entropy_with_logits(out["mortality"].squeeze(1), target["mortality"]),
        "stay": F.smooth_l1_loss(out["stay"].squeeze(1), target["stay"]),
        "ward": F.cross_entropy(out["ward"], target["ward"]),
    }


def project(gradients):
    """Take out of every task's gradient the part that works against another task."""
    projected, conflicts = [], 0
    for i, own in enumerate(gradients):
        g = own.clone()
        others = [k for k in range(len(gradients)) if k != i]
        random.shuffle(others)
        for k in others:
            dot = torch.dot(g, gradients[k])
            if dot < 0:
                g -= dot / gradients[k].pow(2).sum() * gradients[k]
                conflicts += 1
        projected.append(g)
    return torch.stack(projected).sum(0), conflicts


def pcgrad_backward(model, losses):
    shared = list(model.encoder.parameters())
    flat = []
    for task in TASKS:
        own = list(model.heads[task].parameters())
        grads = torch.autograd.grad(losses[task], shared + own, retain_graph=True)
        flat.append(torch.cat([g.flatten() for g in grads[: len(shared)]]))
        for p, g in zip(own, grads[len(shared):]):
            p.grad = g
    merged, conflicts = project(flat)
    for p, g in zip(shared, merged.split([p.numel() for p in shared])):
        p.grad = g.view_as(p)
    return conflicts


def main():
    gen = torch.Generator().manual_seed(6)
    series, target = make_patients(1600, gen)
    test_series, test_target = make_patients(800, gen)
    model = VitalsNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        conflicts = 0
        for idx in torch.randperm(len(series)).split(64):
            losses = task_losses(model(series[idx]), {k: v[idx] for k, v in target.items()})
            conflicts += pcgrad_backward(model, losses)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(test_series)
            test = task_losses(out, test_target)
        print(f"epoch {epoch}  conflicts {conflicts:3d}  " + "  ".join(f"{k} {v.item():.4f}" for k, v in test.items()))
    print(f"ward accuracy {(out['ward'].argmax(1) == test_target['ward']).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
