"""Multi-task soft sensor for a ceramic kiln: one shared encoder, several quality targets with their own heads."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

TASKS = {"porosity": "reg", "shrinkage": "reg", "crack": "bin", "glaze": "cls"}


def simulate(n, gen):
    x = torch.randn(n, 14, generator=gen)
    heat = torch.tanh(x[:, 0] + 0.5 * x[:, 1] * x[:, 2])
    soak = torch.sin(x[:, 3]) + 0.3 * x[:, 4]
    noise = 0.1 * torch.randn(4, n, generator=gen)
    return x, {
        "porosity": heat - 0.5 * soak + noise[0],
        "shrinkage": heat * soak + noise[1],
        "crack": (heat + soak + noise[2] > 0.6).float(),
        "glaze": (soak + noise[3] > 0).long() + (heat + noise[3] > 0.2).long(),
    }


class Kiln(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(14, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        sizes = {"reg": 1, "bin": 1, "cls": 3}
        self.heads = nn.ModuleDict(
            {name: nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, sizes[kind])) for name, kind in TASKS.items()}
        )


def task_loss(kind, out, target):
    if kind == "reg":
        return F.mse_loss(out.squeeze(1), target)
    if kind == "bin":
        return F.binary_cross_entropy_with_logits(out.squeeze(1), target)
    return F.cross_entropy(out, target)


def backward_pass(model, x, targets, weights):
    """Heads are run one by one so that only one head's graph is alive at a time."""
    z = model.encoder(x)
    shared = z.detach().requires_grad_(True)
    losses = {}
    for name, kind in TASKS.items():
        loss = task_loss(kind, model.heads[name](shared), targets[name])
        (weights[name] * loss).backward()
        losses[name] = loss.item()
    z.backward(shared.grad)
    return losses


@torch.no_grad()
def report(model, x, targets):
    z = model.encoder(x)
    out = {name: model.heads[name](z) for name in TASKS}
    r2 = {n: (1 - F.mse_loss(out[n][:, 0], targets[n]) / targets[n].var()).item() for n in ("porosity", "shrinkage")}
    crack = ((out["crack"][:, 0] > 0) == (targets["crack"] > 0.5)).float().mean().item()
    glaze = (out["glaze"].argmax(1) == targets["glaze"]).float().mean().item()
    return {**r2, "crack": crack, "glaze": glaze}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--batch", type=int, default=100)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args([])

    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    x, targets = simulate(2000, gen)
    x_test, targets_test = simulate(800, gen)
    weights = {"porosity": 1.0, "shrinkage": 1.0, "crack": 0.5, "glaze": 0.5}

    model = Kiln()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        for idx in torch.randperm(len(x)).split(args.batch):
            opt.zero_grad()
            losses = backward_pass(model, x[idx], {n: t[idx] for n, t in targets.items()}, weights)
            opt.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d}  " + "  ".join(f"{n} {v:.3f}" for n, v in losses.items()))
    return model, report(model, x_test, targets_test)


if __name__ == "__main__":
    model, scores = main()
    print("test: " + "  ".join(f"{n} {v:.3f}" for n, v in scores.items()))
