"""Completing a gene-by-sample table with a factorization whose rank grows from one to six, one factor at a time."""
import numpy as np
import torch
import torch.nn as nn

GENES, SAMPLES, TRUE_RANK = 60, 50, 5


def expression(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(GENES, TRUE_RANK)) * np.array([3.0, 2.2, 1.6, 1.2, 0.9])
    b = rng.normal(size=(SAMPLES, TRUE_RANK))
    table = a @ b.T / np.sqrt(TRUE_RANK) + 0.05 * rng.normal(size=(GENES, SAMPLES))
    seen = rng.random((GENES, SAMPLES)) < 0.6
    return torch.tensor(table, dtype=torch.float32), torch.from_numpy(seen)


class Factors(nn.Module):
    def __init__(self, scale=0.1):
        super().__init__()
        self.scale = scale
        self.left = nn.Parameter(scale * torch.randn(GENES, 1))
        self.right = nn.Parameter(scale * torch.randn(SAMPLES, 1))
        self.level = nn.Parameter(torch.zeros(()))

    @property
    def rank(self):
        return self.left.shape[1]

    def grow(self):
        with torch.no_grad():
            left = torch.cat([self.left, self.scale * torch.randn(GENES, 1)], dim=1)
            right = torch.cat([self.right, self.scale * torch.randn(SAMPLES, 1)], dim=1)
        self.left = nn.Parameter(left)
        self.right = nn.Parameter(right)

    def forward(self):
        return self.left @ self.right.t() + self.level


def swap_parameters(opt, model):
    """Puts the present parameters in the optimizer's only group and drops the state of those that are gone."""
    opt.param_groups[0]["params"] = list(model.parameters())
    alive = set(opt.param_groups[0]["params"])
    for p in list(opt.state):
        if p not in alive:
            del opt.state[p]


def relative_error(model, table, mask):
    with torch.no_grad():
        gap = (model() - table)[mask].norm()
    return (gap / table[mask].norm()).item()


def main():
    torch.manual_seed(19)
    table, seen = expression(4)
    model = Factors()
    opt = torch.optim.Adam(model.parameters(), lr=0.03)
    history = []
    for stage in range(6):
        if stage:
            model.grow()
            swap_parameters(opt, model)
        for _ in range(300):
            gap = (model() - table)[seen]
            penalty = 1e-3 * (model.left.pow(2).mean() + model.right.pow(2).mean())
            loss = gap.pow(2).mean() + penalty
            opt.zero_grad()
            loss.backward()
            opt.step()
        history.append(relative_error(model, table, ~seen))
        print(f"rank {model.rank} loss {loss.item():.4f} error of unseen entries {history[-1]:.3f}")
    print(f"best rank {int(np.argmin(history)) + 1}, error {min(history):.3f}")
    return model, opt, history


if __name__ == "__main__":
    model, opt, history = main()
