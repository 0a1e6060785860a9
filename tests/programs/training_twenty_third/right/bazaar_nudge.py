"""Click and return-rate model of a marketplace: two objectives on shared embeddings, conflicting parts projected away."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Conf:
    users: int = 100
    items: int = 60
    dim: int = 12
    rows: int = 14000
    batch: int = 256
    epochs: int = 8
    lr: float = 5e-3
    return_weight: float = 0.7
    seed: int = 31


def interactions(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    taste = torch.randn(cfg.users, 2, generator=g)
    style = torch.randn(cfg.items, 2, generator=g)
    flaw = torch.randn(cfg.items, generator=g)
    u = torch.randint(0, cfg.users, (cfg.rows,), generator=g)
    i = torch.randint(0, cfg.items, (cfg.rows,), generator=g)
    match = (taste[u] * style[i]).sum(1)
    click = torch.rand(cfg.rows, generator=g) < torch.sigmoid(1.5 * match - 0.5)
    returned = torch.rand(cfg.rows, generator=g) < torch.sigmoid(1.5 * flaw[i] - match - 0.5)
    return u, i, click.float(), returned.float()


class Marketplace(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = nn.Embedding(cfg.users, cfg.dim)
        self.item = nn.Embedding(cfg.items, cfg.dim)
        nn.init.normal_(self.user.weight, std=0.2)
        nn.init.normal_(self.item.weight, std=0.2)
        self.trunk = nn.Sequential(nn.Linear(3 * cfg.dim, 32), nn.ReLU())
        self.click = nn.Linear(32, 1)
        self.returned = nn.Linear(32, 1)

    def shared(self):
        return [*self.user.parameters(), *self.item.parameters(), *self.trunk.parameters()]

    def forward(self, u, i):
        a, b = self.user(u), self.item(i)
        h = self.trunk(torch.cat([a, b, a * b], dim=1))
        return self.click(h).squeeze(1), self.returned(h).squeeze(1)


def split_gradient(loss, shared, own):
    grads = torch.autograd.grad(loss, [*shared, *own], retain_graph=True)
    flat = torch.cat([g.flatten() for g in grads[:len(shared)]])
    return flat, grads[len(shared):]


def without_conflict(g, other):
    """Removes from g the component that works against the other objective (Yu et al., 2020)."""
    dot = g @ other
    if dot >= 0:
        return g
    return g - dot / other.square().sum() * other


def set_gradients(model, click_loss, return_loss):
    shared = model.shared()
    click_own, return_own = list(model.click.parameters()), list(model.returned.parameters())
    g_click, own_click = split_gradient(click_loss, shared, click_own)
    g_return, own_return = split_gradient(return_loss, shared, return_own)
    merged = without_conflict(g_click, g_return) + without_conflict(g_return, g_click)
    for p, g in zip(shared, merged.split([p.numel() for p in shared])):
        p.grad = g.view_as(p)
    for p, g in zip(click_own + return_own, own_click + own_return):
        p.grad = g
    return (g_click @ g_return < 0).item()


def losses(model, u, i, click, returned, cfg):
    c, r = model(u, i)
    return (F.binary_cross_entropy_with_logits(c, click),
            cfg.return_weight * F.binary_cross_entropy_with_logits(r, returned))


def main(cfg=Conf()):
    torch.manual_seed(cfg.seed)
    data = interactions(cfg)
    order = torch.randperm(cfg.rows)
    train, valid = order[:12000], order[12000:]
    model = Marketplace(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        clashes = 0
        batches = train[torch.randperm(len(train))].split(cfg.batch)
        for rows in batches:
            pair = losses(model, *(column[rows] for column in data), cfg)
            clashes += set_gradients(model, *pair)
            opt.step()
        with torch.no_grad():
            vc, vr = (v.item() for v in losses(model, *(column[valid] for column in data), cfg))
        print(f"epoch {epoch + 1}  valid click {vc:.4f}  valid return {vr / cfg.return_weight:.4f}  "
              f"conflicts {clashes}/{len(batches)}")
    return model, vc, vr


if __name__ == "__main__":
    main()
