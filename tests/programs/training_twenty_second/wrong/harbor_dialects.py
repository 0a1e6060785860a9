"""Mixture-of-experts regression: several "dialects" share one input space, each with its own mapping."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    dim: int = 16
    out: int = 4
    dialects: int = 6
    experts: int = 6
    top_k: int = 1
    hidden: int = 12
    aux_weight: float = 0.01
    steps: int = 600
    batch: int = 256
    lr: float = 3e-3
    seed: int = 3


class Expert(nn.Module):
    def __init__(self, dim, hidden, out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, out))

    def forward(self, x):
        return self.net(x)


class SparseMoE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.k = cfg.top_k
        self.out = cfg.out
        self.router = nn.Linear(cfg.dim, cfg.experts, bias=False)
        self.experts = nn.ModuleList(Expert(cfg.dim, cfg.hidden, cfg.out) for _ in range(cfg.experts))

    def forward(self, x):
        probs = self.router(x).softmax(dim=-1)
        weights, chosen = probs.topk(self.k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)

        y = x.new_zeros(x.size(0), self.out)
        for e, expert in enumerate(self.experts):
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            if rows.numel():
                y = y.index_add(0, rows, weights[rows, slot, None] * expert(x[rows]))

        # load balancing as in Switch Transformer: E * sum_e f_e * P_e
        load = F.one_hot(chosen, probs.size(-1)).float().sum(1).mean(0) / self.k
        balance = probs.size(-1) * (load * probs.mean(0)).sum()
        return y, balance, load


class Dialects:
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        self.g, self.cfg = g, cfg
        self.centers = 1.5 * torch.randn(cfg.dialects, cfg.dim, generator=g)
        self.maps = torch.randn(cfg.dialects, cfg.dim, cfg.out, generator=g) / cfg.dim ** 0.5

    def sample(self, n):
        d = torch.randint(self.cfg.dialects, (n,), generator=self.g)
        x = self.centers[d] + torch.randn(n, self.cfg.dim, generator=self.g)
        y = torch.einsum("nd,ndo->no", x, self.maps[d]).tanh() * 2
        return x, y, d


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    data = Dialects(cfg)
    model = SparseMoE(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=cfg.steps)

    for step in range(cfg.steps):
        x, y, _ = data.sample(cfg.batch)
        pred, balance, load = model(x)
        task = F.mse_loss(pred, y)
        loss = task + cfg.aux_weight * balance
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 200 == 0 or step == cfg.steps - 1:
            shares = " ".join(f"{v:.2f}" for v in load.tolist())
            print(f"step {step:4d}  mse {task.item():.4f}  balance {balance.item():.3f}  load [{shares}]")

    model.eval()
    with torch.no_grad():
        x, y, d = data.sample(4096)
        pred, _, load = model(x)
        test_mse = F.mse_loss(pred, y).item()
    print(f"held-out mse {test_mse:.4f}")


if __name__ == "__main__":
    main()
