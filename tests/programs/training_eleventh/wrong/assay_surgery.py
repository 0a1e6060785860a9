"""Multi-task regression on synthetic assay panels with conflict-free gradient combination.

Three assays (solubility, permeability, toxicity) are predicted from a fingerprint by a shared trunk with a head per
assay.  The tasks pull the trunk in different directions, so the trunk gradient is put together as in PCGrad: every task
gradient is projected onto the normal plane of those that it conflicts with, and the projected gradients are added.
"""
import random

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 5
TASKS = ("solubility", "permeability", "toxicity")
BITS, N_TRAIN, N_TEST = 64, 1200, 500
STEPS, BATCH = 700, 100


def make_panel(n, rng, loadings):
    bits = (rng.random((n, BITS)) < 0.3).astype(np.float32)
    hidden = np.tanh(bits @ loadings["mix"] - loadings["shift"])
    clean = hidden @ loadings["out"]
    noisy = clean + 0.05 * rng.normal(size=clean.shape)
    return torch.from_numpy(bits), torch.from_numpy(noisy.astype(np.float32))


def make_loadings(rng):
    mix = rng.normal(size=(BITS, 12)) / np.sqrt(BITS * 0.2)
    out = rng.normal(size=(12, len(TASKS)))
    out[:, 1] = -0.6 * out[:, 0] + 0.8 * out[:, 1]
    return {"mix": mix, "shift": mix.sum(0) * 0.3, "out": out}


class AssayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(BITS, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU())
        self.heads = nn.ModuleDict({task: nn.Linear(16, 1) for task in TASKS})

    def forward(self, bits):
        z = self.trunk(bits)
        return {task: head(z).squeeze(-1) for task, head in self.heads.items()}


def project(task_grads):
    """PCGrad: remove from each task gradient what points against another task."""
    combined = torch.zeros_like(task_grads[0])
    for i, own in enumerate(task_grads):
        g = own.clone()
        others = [j for j in range(len(task_grads)) if j != i]
        random.shuffle(others)
        for j in others:
            overlap = torch.dot(g, task_grads[j])
            if overlap < 0:
                g -= overlap / (task_grads[j].norm() ** 2 + 1e-12) * task_grads[j]
        combined += g
    return combined


def task_gradients(net, optimizer, losses):
    """Trunk gradient of each task; the heads' gradients are put in place at the end."""
    shared = list(net.trunk.parameters())
    per_task, head_grads = [], {}
    for task, loss in losses.items():
        optimizer.zero_grad(set_to_none=False)
        loss.backward(retain_graph=True)
        per_task.append([p.grad for p in shared])
        head_grads[task] = [p.grad.clone() for p in net.heads[task].parameters()]
    for task, grads in head_grads.items():
        for p, g in zip(net.heads[task].parameters(), grads):
            p.grad = g
    return shared, [torch.cat([g.flatten() for g in grads]) for grads in per_task]


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    loadings = make_loadings(rng)
    x, y = make_panel(N_TRAIN, rng, loadings)
    x_test, y_test = make_panel(N_TEST, rng, loadings)
    mean, std = y.mean(0), y.std(0)
    y, y_test = (y - mean) / std, (y_test - mean) / std

    net = AssayNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(STEPS):
        rows = torch.randint(0, N_TRAIN, (BATCH,))
        out = net(x[rows])
        losses = {task: F.mse_loss(out[task], y[rows, k]) for k, task in enumerate(TASKS)}
        shared, grads = task_gradients(net, optimizer, losses)
        flat, offset = project(grads), 0
        for p in shared:
            p.grad = flat[offset:offset + p.numel()].view_as(p).clone()
            offset += p.numel()
        optimizer.step()
        if (step + 1) % 175 == 0:
            print(f"step {step + 1}  " + "  ".join(f"{t} {l.item():.3f}" for t, l in losses.items()))

    with torch.no_grad():
        out = net(x_test)
        r2 = [1 - F.mse_loss(out[t], y_test[:, k]).item() / y_test[:, k].var().item() for k, t in enumerate(TASKS)]
    print("held-out R2  " + "  ".join(f"{t} {v:.3f}" for t, v in zip(TASKS, r2)))
    return r2


if __name__ == "__main__":
    held_out = main()
