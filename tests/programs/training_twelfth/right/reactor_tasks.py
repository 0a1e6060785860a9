"""One network for three quantities of a stirred-tank reactor (yield, heat, by-product). The tasks pull the shared trunk
in different directions; gradient surgery (PCGrad) projects out the conflicting parts before the optimizer step."""
import random

import torch
import torch.nn as nn

torch.manual_seed(67)
random.seed(67)

TASKS = ["yield", "heat", "byproduct"]


def make_runs(n, gen):
    """Inlet concentration, temperature, residence time, catalyst; all scaled to [-1, 1]."""
    x = torch.rand(n, 4, generator=gen) * 2 - 1
    c, temp, tau, cat = x.unbind(1)
    k1 = torch.exp(1.2 * temp + 0.8 * cat)
    k2 = torch.exp(2.0 * temp - 0.5 * cat - 1.0)
    t = torch.exp(tau)
    conversion = k1 * t / (1 + k1 * t)
    loss = k2 * t / (1 + k2 * t)
    y = torch.stack([conversion * (1 - loss), (2 + c) * (conversion + 2 * loss), conversion * loss], dim=1)
    return x, y + 0.01 * torch.randn(n, 3, generator=gen)


class ReactorNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.heads = nn.ModuleDict({t: nn.Linear(width, 1) for t in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([self.heads[t](h) for t in TASKS], dim=1)


def surgery(grads):
    """grads: one flat vector per task."""
    conflicts = 0
    merged = torch.zeros_like(grads[0])
    for i, g in enumerate(grads):
        g = g.clone()
        others = [j for j in range(len(grads)) if j != i]
        random.shuffle(others)
        for j in others:
            dot = torch.dot(g, grads[j])
            if dot < 0:
                g -= dot / grads[j].dot(grads[j]) * grads[j]
                conflicts += 1
        merged += g
    return merged, conflicts


def train_step(model, opt, x, y):
    losses = (model(x) - y).pow(2).mean(dim=0)
    trunk = list(model.trunk.parameters())
    flat = []
    for k, task in enumerate(TASKS):
        head = list(model.heads[task].parameters())
        grads = torch.autograd.grad(losses[k], trunk + head, retain_graph=k + 1 < len(TASKS))
        flat.append(torch.cat([g.flatten() for g in grads[: len(trunk)]]))
        for p, g in zip(head, grads[len(trunk):]):
            p.grad = g
    merged, conflicts = surgery(flat)
    for p, part in zip(trunk, merged.split([p.numel() for p in trunk])):
        p.grad = part.view_as(p)
    opt.step()
    return losses.detach(), conflicts


def main(epochs=40, batch_size=64):
    gen = torch.Generator().manual_seed(9)
    x, y = make_runs(1280, gen)
    x_test, y_test = make_runs(500, gen)
    mean, std = y.mean(0), y.std(0)
    model = ReactorNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        model.train()
        sums, conflicts = torch.zeros(len(TASKS)), 0
        for idx in torch.randperm(len(x)).split(batch_size):
            losses, hits = train_step(model, opt, x[idx], (y[idx] - mean) / std)
            sums += losses * len(idx)
            conflicts += hits
        sched.step()
        if epoch % 8 == 7:
            shown = " ".join(f"{t} {v:.4f}" for t, v in zip(TASKS, (sums / len(x)).tolist()))
            print(f"epoch {epoch + 1:2d}  {shown}  conflicts {conflicts}")
    model.eval()
    with torch.no_grad():
        error = (model(x_test) * std + mean - y_test).pow(2).mean(0).sqrt()
    print("test rmse " + " ".join(f"{t} {e:.4f}" for t, e in zip(TASKS, error.tolist())))


if __name__ == "__main__":
    main()
