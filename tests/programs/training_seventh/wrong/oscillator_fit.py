"""Identify stiffness and damping of coupled oscillators from noisy tracks; a small network models the friction residue."""
import numpy as np
import torch
from torch import nn

DT, MASSES = 0.05, 3


class HeavyBall(torch.optim.Optimizer):
    """SGD with momentum, decoupled groups and a per-tensor trust ratio."""

    def __init__(self, params, lr, momentum=0.9, weight_decay=0.0, trust=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay, trust=trust))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad
                if group["weight_decay"]:
                    d = d.add(p, alpha=group["weight_decay"])
                if group["trust"]:
                    ratio = group["trust"] * p.norm() / (d.norm() + 1e-8)
                    d = d * ratio.clamp(1e-3, 10.0)
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = d
                else:
                    state["velocity"].mul_(group["momentum"]).add_(d)
                p.add_(state["velocity"], alpha=-group["lr"])


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.stiffness = nn.Parameter(torch.full((MASSES + 1,), 1.0))
        self.damping = nn.Parameter(torch.full((MASSES,), 0.05))
        self.residue = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
        nn.init.zeros_(self.residue[2].weight)
        nn.init.zeros_(self.residue[2].bias)

    def acceleration(self, q, v):
        wall = torch.zeros_like(q[:, :1])
        stretch = torch.cat([q, wall], 1) - torch.cat([wall, q], 1)
        force = self.stiffness * stretch
        friction = self.damping * v + 0.1 * self.residue(v[..., None]).squeeze(-1)
        return force[:, 1:] - force[:, :-1] - friction

    def rollout(self, q, v, steps):
        out = []
        for _ in range(steps):
            v = v + DT * self.acceleration(q, v)
            q = q + DT * v
            out.append(q)
        return torch.stack(out, 1)


def tracks(n, steps, rng):
    k = np.array([2.6, 1.4, 2.2, 1.8])
    c = np.array([0.35, 0.15, 0.25])
    q, v = rng.standard_normal((n, MASSES)), rng.standard_normal((n, MASSES))
    start, path = (q.copy(), v.copy()), []
    for _ in range(steps):
        pad = np.zeros((n, 1))
        f = k * (np.concatenate([q, pad], 1) - np.concatenate([pad, q], 1))
        v = v + DT * (f[:, 1:] - f[:, :-1] - c * v - 0.05 * np.sin(2 * v))
        q = q + DT * v
        path.append(q + 0.01 * rng.standard_normal(q.shape))
    to = lambda a: torch.tensor(a, dtype=torch.float32)
    return to(start[0]), to(start[1]), to(np.stack(path, 1)), to(k), to(c)


def identify(chain, q0, v0, path, epochs=130, batch=32):
    opt = HeavyBall([
        {"params": chain.residue.parameters(), "weight_decay": 1e-4},
        {"params": [chain.stiffness, chain.damping]},
    ], lr=0.03)
    gen = torch.Generator().manual_seed(5)
    for e in range(epochs):
        pick = torch.randint(0, len(q0), (batch,), generator=gen)
        loss = ((chain.rollout(q0[pick], v0[pick], path.shape[1]) - path[pick]) ** 2).mean()
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        if e % 26 == 0:
            print(f"epoch {e:4d}  track error {loss.item():.5f}")
    return opt


if __name__ == "__main__":
    torch.manual_seed(0)
    q0, v0, path, k_true, c_true = tracks(256, 30, np.random.default_rng(14))
    chain = Chain()
    opt = identify(chain, q0, v0, path)
    print("stiffness", [round(x, 3) for x in chain.stiffness.tolist()])
    print("damping  ", [round(x, 3) for x in chain.damping.tolist()])
