"""Weld inspection with three conflicting targets; conflicting gradients are projected before the step."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 43
TASKS = ("depth", "porosity", "defect")


def welds(n, rng, a, b):
    x = rng.standard_normal((n, 10)).astype(np.float32)
    s, t = np.tanh(x @ a), np.tanh(x @ b)
    depth = s[:, 0] + 0.5 * s[:, 1] * t[:, 0] + 0.1 * rng.standard_normal(n)
    porosity = 10 * (-0.8 * s[:, 0] + t[:, 1] + 0.1 * rng.standard_normal(n))
    defect = (s[:, 2] + t[:, 2] + 0.3 * rng.standard_normal(n) > 0).astype(np.float32)
    return torch.tensor(x), torch.tensor(np.stack([depth, porosity, defect], 1).astype(np.float32))


class WeldNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h).squeeze(-1) for name, head in self.heads.items()}


def losses(out, target):
    return [
        F.mse_loss(out["depth"], target[:, 0]),
        F.mse_loss(out["porosity"], target[:, 1]),
        F.binary_cross_entropy_with_logits(out["defect"], target[:, 2]),
    ]


def project(grads, generator):
    """PCGrad: drop from each task's gradient the part that points against another task's."""
    mixed = []
    for i, g in enumerate(grads):
        g = g.clone()
        for j in torch.randperm(len(grads), generator=generator).tolist():
            if j == i:
                continue
            dot = torch.dot(g, grads[j])
            if dot < 0:
                g -= dot / grads[j].pow(2).sum().clamp_min(1e-12) * grads[j]
        mixed.append(g)
    return torch.stack(mixed).sum(0)


def surgery(model, parts, generator):
    trunk = list(model.trunk.parameters())
    flat = []
    for name, part in zip(TASKS, parts):
        head = list(model.heads[name].parameters())
        grads = torch.autograd.grad(part, trunk + head, retain_graph=name != TASKS[-1])
        flat.append(torch.cat([g.flatten() for g in grads[: len(trunk)]]))
        for p, g in zip(head, grads[len(trunk):]):
            p.grad = g
    merged = project(flat, generator).split([p.numel() for p in trunk])
    for p, g in zip(trunk, merged):
        p.grad = g.view_as(p)
    conflicts = sum(torch.dot(flat[i], flat[j]).item() < 0 for i in range(3) for j in range(i))
    return conflicts


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    order = torch.Generator().manual_seed(SEED)
    a, b = (rng.standard_normal((10, 3)) / 3 for _ in range(2))
    (x, target), (x_test, target_test) = (welds(n, rng, a, b) for n in (1200, 800))
    scale, shift = target.std(0), target.mean(0)
    scale[2], shift[2] = 1.0, 0.0
    target, target_test = (target - shift) / scale, (target_test - shift) / scale
    model = WeldNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(20):
        conflicts = steps = 0
        for idx in torch.randperm(len(x)).split(50):
            parts = losses(model(x[idx]), target[idx])
            conflicts += surgery(model, parts, order)
            opt.step()
            steps += 1
        if epoch % 5 == 4:
            print(f"epoch {epoch:2d}  " + "  ".join(f"{n} {p.item():.3f}" for n, p in zip(TASKS, parts))
                  + f"  conflicts per step {conflicts / steps:.2f}")
    with torch.no_grad():
        test = [part.item() for part in losses(model(x_test), target_test)]
    print("test  " + "  ".join(f"{n} {v:.3f}" for n, v in zip(TASKS, test)))


if __name__ == "__main__":
    main()
