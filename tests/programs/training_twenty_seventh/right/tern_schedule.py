"""Arctic tern route prediction with schedule-free SGD (Defazio et al. 2024): no decay schedule, averaging instead."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=0.6)
    ap.add_argument("--beta", type=float, default=0.9)
    ap.add_argument("--warmup", type=int, default=40)
    ap.add_argument("--weight-decay", type=float, default=1e-4)
    ap.add_argument("--seed", type=int, default=12)
    return ap.parse_args([])


class ScheduleFreeSGD(torch.optim.Optimizer):
    """Keeps z (the base sequence) in the state. The parameters hold y while training and x (the average) in eval."""

    def __init__(self, params, lr, beta=0.9, warmup=0, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta=beta, warmup=warmup, weight_decay=weight_decay,
                                      k=0, weight_sum=0.0, training=True))

    @torch.no_grad()
    def eval(self):
        for group in self.param_groups:
            if group["training"]:
                for p in group["params"]:
                    if "z" in self.state[p]:
                        p.lerp_(self.state[p]["z"], 1 - 1 / group["beta"])
                group["training"] = False

    @torch.no_grad()
    def train(self):
        for group in self.param_groups:
            if not group["training"]:
                for p in group["params"]:
                    if "z" in self.state[p]:
                        p.lerp_(self.state[p]["z"], 1 - group["beta"])
                group["training"] = True

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            assert group["training"], "call opt.train() first"
            beta, k = group["beta"], group["k"]
            lr = group["lr"] * min(1.0, (k + 1) / max(group["warmup"], 1))
            group["weight_sum"] += lr ** 2
            c = lr ** 2 / group["weight_sum"]
            for y in group["params"]:
                if y.grad is None:
                    continue
                state = self.state[y]
                if "z" not in state:
                    state["z"] = y.clone()
                z = state["z"]
                grad = y.grad.add(y, alpha=group["weight_decay"])
                y.lerp_(z, c)
                y.add_(grad, alpha=lr * (beta * (1 - c) - 1))
                z.sub_(grad, alpha=lr)
            group["k"] = k + 1


class RouteNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, track):
        h, _ = self.gru(track)
        return self.out(h[:, -1])


def make_tracks(n, g):
    """Twelve noisy fixes (two coordinates and wind) and where the bird is three fixes later."""
    s = torch.linspace(0, 1.2, 15)
    bend, start, wind = (torch.randn(n, 1, generator=g) for _ in range(3))
    lat = torch.cos(math.pi * s) + 0.2 * bend * torch.sin(2 * math.pi * s)
    lon = 0.4 * start + 0.5 * bend * torch.sin(math.pi * s) + 0.3 * wind * s ** 2
    path = torch.stack([lat, lon, wind.expand(-1, 15)], -1)
    return path[:, :12] + 0.08 * torch.randn(n, 12, 3, generator=g), path[:, -1, :2]


args = parse()
torch.manual_seed(args.seed)
g = torch.Generator().manual_seed(args.seed)
x, y = make_tracks(768, g)
x_val, y_val = make_tracks(512, g)
model = RouteNet()
opt = ScheduleFreeSGD(model.parameters(), args.lr, args.beta, args.warmup, args.weight_decay)
for epoch in range(args.epochs):
    opt.train()
    for idx in torch.randperm(len(x), generator=g).split(args.batch):
        loss = F.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    opt.eval()
    if epoch % 4 == 3:
        with torch.no_grad():
            val = F.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch + 1:2d}  train {loss.item():.4f}  val {val:.4f}")
