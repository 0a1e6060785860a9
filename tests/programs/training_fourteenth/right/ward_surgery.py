"""Multi-task network for a synthetic ward: death (one in six), length of stay, and lactate.

The three tasks share a trunk. Their trunk gradients are combined by projection of conflicting parts (PCGrad, Yu et
al. 2020); each head learns from its own task only.
"""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TASKS = ("death", "stay", "lactate")


def patients(n, rng, maps):
    x = rng.normal(size=(n, 20))
    h = np.tanh(x @ maps["hidden"])
    stay = h @ maps["stay"] + 0.3 * rng.normal(size=n)
    lactate = h @ maps["lactate"] + 0.3 * rng.normal(size=n)
    risk = 1.5 * (h @ maps["death"]) - 3.5
    death = rng.random(n) < 1 / (1 + np.exp(-risk))
    lactate[rng.random(n) < 0.4] = np.nan  # not measured
    columns = {"death": death, "stay": stay, "lactate": lactate}
    return torch.tensor(x).float(), {t: torch.tensor(v).float() for t, v in columns.items()}


class WardNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.heads = nn.ModuleDict({t: nn.Linear(width, 1) for t in TASKS})

    def forward(self, x):
        z = self.trunk(x)
        return {t: self.heads[t](z).squeeze(-1) for t in TASKS}


def task_losses(out, target, pos_weight):
    known = ~torch.isnan(target["lactate"])
    return {
        "death": F.binary_cross_entropy_with_logits(out["death"], target["death"], pos_weight=pos_weight),
        "stay": F.smooth_l1_loss(out["stay"], target["stay"]),
        "lactate": F.mse_loss(out["lactate"][known], target["lactate"][known]),
    }


def combine(grads):
    """Every task's gradient loses its part against each other task, in random order."""
    result = []
    for i, g in enumerate(grads):
        g = g.clone()
        others = [j for j in range(len(grads)) if j != i]
        random.shuffle(others)
        for j in others:
            dot = torch.dot(g, grads[j])
            if dot < 0:
                g -= dot / grads[j].dot(grads[j]) * grads[j]
        result.append(g)
    return torch.stack(result).sum(0)


def assign(params, vector):
    offset = 0
    for p in params:
        p.grad = vector[offset:offset + p.numel()].view_as(p).clone()
        offset += p.numel()


def auc(score, label):
    ranks = score.argsort().argsort().float() + 1
    n_pos = label.sum()
    return ((ranks[label == 1].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * (len(label) - n_pos))).item()


random.seed(0)
torch.manual_seed(0)
rng = np.random.default_rng(0)
maps = {"hidden": rng.normal(size=(20, 10)) / 4, **{t: rng.normal(size=10) for t in TASKS}}
x, targets = patients(3000, rng, maps)
x_val, t_val = patients(2000, rng, maps)
net = WardNet()
trunk = list(net.trunk.parameters())
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
pos_weight = ((1 - targets["death"]).sum() / targets["death"].sum()).sqrt()
conflicts = steps = 0
for epoch in range(10):
    net.train()
    for idx in torch.randperm(len(x)).split(100):
        losses = task_losses(net(x[idx]), {t: v[idx] for t, v in targets.items()}, pos_weight)
        flat = []
        for t in TASKS:
            head = list(net.heads[t].parameters())
            grads = torch.autograd.grad(losses[t], trunk + head, retain_graph=t != TASKS[-1])
            flat.append(torch.cat([g.flatten() for g in grads[:len(trunk)]]))
            for p, g in zip(head, grads[len(trunk):]):
                p.grad = g
        assign(trunk, combine(flat))
        optimizer.step()
        conflicts += int((torch.stack(flat) @ torch.stack(flat).T < 0).any())
        steps += 1

net.eval()
with torch.no_grad():
    out = net(x_val)
    known = ~t_val["lactate"].isnan()
    r2 = lambda p, t: (1 - (p - t).square().mean() / t.var()).item()
    print(f"steps with a conflict {conflicts / steps:.2f}, deaths in training {targets['death'].mean():.3f}")
    print(f"AUC death {auc(out['death'], t_val['death']):.3f}  R2 stay {r2(out['stay'], t_val['stay']):.3f}  "
          f"R2 lactate {r2(out['lactate'][known], t_val['lactate'][known]):.3f}")
