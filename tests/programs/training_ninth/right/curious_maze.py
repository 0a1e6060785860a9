"""Curiosity in a continuous maze: bootstrapped one-step models over a shared fixed trunk, spread as exploration bonus."""
import copy

import torch
from torch import nn

MEMBERS, WIDTH = 5, 48


class Maze:
    """A ball in a box with two walls; each move is two-dimensional and slightly noisy."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        return -0.8 + 0.1 * torch.rand(self.n, 2, generator=self.gen)

    def step(self, pos, act):
        new = (pos + 0.2 * act + 0.01 * torch.randn(pos.shape, generator=self.gen)).clamp(-1, 1)
        for wall, door in ((-0.3, 0.2), (0.3, -0.2)):
            crossing = (pos[:, 0] - wall) * (new[:, 0] - wall) < 0
            closed = (new[:, 1] - door).abs() > 0.5
            new[:, 0] = torch.where(crossing & closed, pos[:, 0], new[:, 0])
        return new


def trunk():
    net = nn.Sequential(nn.Linear(4, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh())
    for layer in net:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, gain=1.6)
            nn.init.uniform_(layer.bias, -1, 1)
    return net.requires_grad_(False)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = trunk()
        head = nn.Sequential(nn.Linear(96, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
        self.heads = nn.ModuleList([copy.deepcopy(head) for _ in range(MEMBERS)])

    def forward(self, pos, act):
        feats = self.trunk(torch.cat([pos, act], dim=1))
        return torch.stack([pos + h(feats) for h in self.heads])

    @torch.no_grad()
    def spread(self, pos, act):
        return self(pos, act).std(dim=0).mean(dim=1)


class Memory:
    """Every transition is given to a member with probability one half, decided once."""

    def __init__(self, gen):
        self.gen, self.rows = gen, None

    def add(self, *columns):
        member = (torch.rand(len(columns[0]), MEMBERS, generator=self.gen) < 0.5).float()
        new = [*columns, member]
        self.rows = new if self.rows is None else [torch.cat([a, b]) for a, b in zip(self.rows, new)]

    def draw(self, n):
        idx = torch.randint(0, len(self.rows[0]), (n,), generator=self.gen)
        return [r[idx] for r in self.rows]


def explore(env, ensemble, memory, length, gen):
    pos = env.reset()
    for _ in range(length):
        options = torch.rand(8, env.n, 2, generator=gen) * 2 - 1
        bonus = torch.stack([ensemble.spread(pos, o) for o in options])
        act = options[bonus.argmax(0), torch.arange(env.n)]
        new = env.step(pos, act)
        memory.add(pos, act, new)
        pos = new


def main(rounds=12, fits=60):
    torch.manual_seed(19)
    gen = torch.Generator().manual_seed(19)
    env, ensemble, memory = Maze(10, gen), Ensemble(), Memory(gen)
    optimizer = torch.optim.Adam(ensemble.heads.parameters(), lr=2e-3)
    probe = torch.rand(300, 2, generator=gen) * 2 - 1, torch.rand(300, 2, generator=gen) * 2 - 1
    spreads = []
    for r in range(rounds):
        explore(env, ensemble, memory, 60, gen)
        for _ in range(fits):
            pos, act, new, member = memory.draw(128)
            error = (ensemble(pos, act) - new).pow(2).mean(dim=2).T
            loss = 100 * (error * member).sum() / member.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        spreads.append(ensemble.spread(*probe).mean().item())
        if r % 3 == 0:
            print(f"{r:3d}  loss {loss.item():.4f}  spread {spreads[-1]:.4f}")
    with torch.no_grad():
        truth = env.step(*probe)
        final = (ensemble(*probe).mean(0) - truth).pow(2).mean().sqrt().item()
    return ensemble, memory, spreads, final


if __name__ == "__main__":
    ensemble, memory, spreads, final = main()
    crossed = (memory.rows[2][:, 0] > 0.3).float().mean().item()
    print(f"share of states behind both walls {crossed:.3f}  spread {spreads[0]:.4f} -> {spreads[-1]:.4f}  rmse {final:.4f}")
