"""Learn how far to trust each sensor station (bilevel: inner regression, outer one-step hypergradient)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stations", type=int, default=6)
    ap.add_argument("--per-station", type=int, default=120)
    ap.add_argument("--dim", type=int, default=10)
    ap.add_argument("--outer-steps", type=int, default=150)
    ap.add_argument("--inner-steps", type=int, default=5)
    ap.add_argument("--inner-lr", type=float, default=0.05)
    ap.add_argument("--outer-lr", type=float, default=0.05)
    ap.add_argument("--batch", type=int, default=96)
    ap.add_argument("--seed", type=int, default=11)
    return ap.parse_args([])


def make_field(args, g):
    w_true = torch.randn(args.dim, generator=g)
    # the last stations are badly calibrated: they report a mixture with some other quantity
    w_drift = torch.randn(args.dim, generator=g)
    xs, ys, ids = [], [], []
    for s in range(args.stations):
        x = torch.randn(args.per_station, args.dim, generator=g)
        y = x @ w_true + 0.1 * torch.randn(args.per_station, generator=g)
        if s >= args.stations // 2:
            y = 0.1 * y + 0.25 * (x @ w_drift)
        xs.append(x)
        ys.append(y)
        ids.append(torch.full((args.per_station,), s))
    x_ref = torch.randn(400, args.dim, generator=g)
    y_ref = x_ref @ w_true + 0.1 * torch.randn(400, generator=g)
    train = torch.cat(xs), torch.cat(ys), torch.cat(ids)
    return train, (x_ref[:60], y_ref[:60]), (x_ref[60:], y_ref[60:])


class Trust(nn.Module):
    """One positive weight for each station, normalised to mean one."""

    def __init__(self, stations):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(stations))

    def forward(self, ids):
        w = torch.softmax(self.logits, 0) * len(self.logits)
        return w[ids]


def train_loss(params, trust, x, y, ids):
    w, b = params
    return (trust(ids) * (x @ w + b - y) ** 2).mean()


def val_loss(params, x, y):
    w, b = params
    return F.mse_loss(x @ w + b, y)


def sample(train, n, g):
    idx = torch.randint(len(train[0]), (n,), generator=g)
    return tuple(t[idx] for t in train)


def hyper_step(model, trust, trust_opt, train_batch, val, lr):
    """Differentiate the validation loss through one unrolled SGD step."""
    params = list(model.parameters())
    grads = torch.autograd.grad(train_loss(params, trust, *train_batch), params, create_graph=True)
    ahead = [p - lr * g for p, g in zip(params, grads)]
    loss = val_loss(ahead, *val)
    loss.backward()
    trust_opt.step()
    trust_opt.zero_grad()
    return loss.item()


class Linear(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.zeros(()))


args = get_args()
torch.manual_seed(args.seed)
g = torch.Generator().manual_seed(args.seed)
train, val, test = make_field(args, g)
model, trust = Linear(args.dim), Trust(args.stations)
opt = torch.optim.SGD(model.parameters(), lr=args.inner_lr)
trust_opt = torch.optim.Adam(trust.parameters(), lr=args.outer_lr)

for outer in range(args.outer_steps):
    for _ in range(args.inner_steps):
        loss = train_loss(list(model.parameters()), trust, *sample(train, args.batch, g))
        opt.zero_grad()
        loss.backward()
        opt.step()
    v = hyper_step(model, trust, trust_opt, sample(train, args.batch, g), val, args.inner_lr)
    if outer % 30 == 0 or outer == args.outer_steps - 1:
        print(f"outer {outer:3d}  train {loss.item():.4f}  val {v:.4f}")

weights = (torch.softmax(trust.logits, 0) * args.stations).detach()
test_mse = val_loss(list(model.parameters()), *test).item()
print("station trust:", [round(t, 2) for t in weights.tolist()])
print(f"test mse {test_mse:.4f}")
