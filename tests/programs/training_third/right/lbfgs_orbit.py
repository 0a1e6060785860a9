import torch
from torch import nn


class Sinusoids(nn.Module):
    def __init__(self, parts=2):
        super().__init__()
        self.freq = nn.Parameter(torch.tensor([0.9, 2.2])[:parts].clone())
        self.sin = nn.Parameter(0.1 * torch.ones(parts))
        self.cos = nn.Parameter(0.1 * torch.ones(parts))
        self.level = nn.Parameter(torch.zeros(()))

    def forward(self, t):
        phase = t[:, None] * self.freq
        return (self.sin * phase.sin() + self.cos * phase.cos()).sum(-1) + self.level


class Solver:
    def __init__(self, model):
        self.model, self.calls = model, 0
        linear = [model.sin, model.cos, model.level]
        self.rough = torch.optim.Adam(linear, lr=0.05)
        self.fine = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=10, line_search_fn="strong_wolfe")

    def cost(self, t, y):
        return (self.model(t) - y).pow(2).mean()

    def evaluate(self, opt, t, y):
        def closure():
            self.calls += 1
            opt.zero_grad()
            value = self.cost(t, y)
            if value.requires_grad:
                value.backward()
            return value

        return closure

    def solve(self, t, y, warm=30, rounds=5):
        for _ in range(warm):
            start = self.rough.step(self.evaluate(self.rough, t, y))
        print(f"rough cost {start.item():.5f}")
        for k in range(rounds):
            start = self.fine.step(self.evaluate(self.fine, t, y))
            print(f"round {k} cost at start {start.item():.5f} calls {self.calls}")


def velocities(n, g):
    t = torch.sort(12 * torch.rand(n, generator=g)).values
    clean = 1.2 * torch.sin(1.0 * t + 0.4) + 0.5 * torch.sin(2.35 * t + 1.0) + 0.3
    return t, clean + 0.05 * torch.randn(n, generator=g)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Sinusoids()
    Solver(model).solve(*velocities(150, torch.Generator().manual_seed(5)))
    print("frequencies", [round(v, 3) for v in model.freq.tolist()])
