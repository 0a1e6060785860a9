"""Multi-task ranker (click, save, hide) with gradient surgery on the shared bottom.

Conflicting task gradients are projected onto each other's normal plane before they are summed
(Yu et al., "Gradient Surgery for Multi-Task Learning"). Task towers get their own gradient unchanged.
"""
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TASKS = ("click", "save", "hide")
N_FEATURES = 24


def make_logs(n, rng, w, scale):
    x = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    hidden = np.tanh(x @ w["hidden"])
    score = scale * (hidden @ w["out"])
    labels = rng.random(score.shape) < 1 / (1 + np.exp(-score))
    return torch.from_numpy(x), torch.from_numpy(labels.astype(np.float32))


class MultiTaskRanker(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(N_FEATURES, width), nn.ReLU(), nn.Linear(width, 16), nn.ReLU())
        self.towers = nn.ModuleDict({t: nn.Linear(16, 1) for t in TASKS})

    def forward(self, x):
        h = self.shared(x)
        return torch.cat([self.towers[t](h) for t in TASKS], dim=1)


class GradientSurgery:
    def __init__(self, optimizer, shared_params, rng):
        self.optimizer = optimizer
        self.shared_params = list(shared_params)
        self.rng = rng
        self.conflicts, self.pairs = 0, 0

    def collect(self, losses):
        """One backward pass for each task; returns the gradients of the shared bottom, one list per task."""
        self.optimizer.zero_grad(set_to_none=True)
        per_task = []
        for k, loss in enumerate(losses):
            loss.backward(retain_graph=k + 1 < len(losses))
            per_task.append([p.grad for p in self.shared_params])
            for p in self.shared_params:
                p.grad.zero_()
        return per_task

    def project(self, per_task):
        flat = [torch.cat([g.flatten() for g in grads]) for grads in per_task]
        merged = torch.zeros_like(flat[0])
        for i, g_i in enumerate(flat):
            g = g_i.clone()
            others = [j for j in range(len(flat)) if j != i]
            self.rng.shuffle(others)
            for j in others:
                dot = torch.dot(g, flat[j])
                self.pairs += 1
                if dot < 0:
                    self.conflicts += 1
                    g -= dot / flat[j].pow(2).sum().clamp(min=1e-12) * flat[j]
            merged += g
        return merged

    def step(self, losses):
        merged = self.project(self.collect(losses))
        chunks = merged.split([p.numel() for p in self.shared_params])
        for p, chunk in zip(self.shared_params, chunks):
            p.grad = chunk.view_as(p).clone()
        self.optimizer.step()


def auc(score, label):
    order = score.argsort()
    rank = torch.empty(len(score)).scatter_(0, order, torch.arange(1.0, len(score) + 1))
    pos = label.sum()
    return ((rank[label == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(label) - pos))).item()


def main(seed=4, epochs=6, batch_size=256):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    w = {"hidden": rng.normal(0, 0.4, (N_FEATURES, 6)), "out": rng.normal(size=(6, 3))}
    w["out"][:, 2] = -0.5 * w["out"][:, 0] + 0.8 * w["out"][:, 2]
    scale = np.array([1.5, 2.0, 2.0])
    x, y = make_logs(8000, rng, w, scale)
    x_test, y_test = make_logs(4000, rng, w, scale)

    model = MultiTaskRanker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    surgery = GradientSurgery(optimizer, model.shared.parameters(), random.Random(seed))
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(batch_size):
            logits = model(x[idx])
            losses = [F.binary_cross_entropy_with_logits(logits[:, k], y[idx, k]) for k in range(len(TASKS))]
            surgery.step(losses)
        with torch.no_grad():
            scores = model(x_test)
        aucs = {t: round(auc(scores[:, k], y_test[:, k]), 4) for k, t in enumerate(TASKS)}
        print(f"epoch {epoch + 1} conflicts {surgery.conflicts}/{surgery.pairs} auc {aucs}")
    return model, surgery, aucs


if __name__ == "__main__":
    model, surgery, aucs = main()
