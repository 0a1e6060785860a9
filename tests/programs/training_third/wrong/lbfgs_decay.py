import torch
from torch import nn


class DecayMixture(nn.Module):
    def __init__(self, parts=3):
        super().__init__()
        self.log_rate = nn.Parameter(torch.linspace(-1.0, 1.5, parts))
        self.amount = nn.Parameter(torch.ones(parts) / parts)
        self.floor = nn.Parameter(torch.zeros(()))

    def forward(self, t):
        return (self.amount * torch.exp(-t[:, None] * self.log_rate.exp())).sum(-1) + self.floor


class CurveFitter:
    def __init__(self, model, ridge=1e-4):
        self.model, self.ridge = model, ridge
        self.opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=8)
        self.calls = 0
        self.trace = []

    def penalty(self):
        return sum(p.pow(2).sum() for p in self.model.parameters())

    def cost(self, t, y):
        return (self.model(t) - y).pow(2).mean() + self.ridge * self.penalty()

    def fit(self, t, y, rounds=20):
        def closure():
            self.calls += 1
            loss = self.cost(t, y)
            loss.backward()
            return loss

        for _ in range(rounds):
            self.opt.zero_grad()
            self.opt.step(closure)
            with torch.no_grad():
                self.trace.append(self.cost(t, y).item())
        return self


def fluorescence(n, g):
    t = torch.linspace(0, 6, n)
    clean = 0.7 * torch.exp(-0.5 * t) + 0.9 * torch.exp(-3.0 * t) + 0.2
    return t, clean + 0.01 * torch.randn(n, generator=g)


if __name__ == "__main__":
    torch.manual_seed(0)
    t, y = fluorescence(120, torch.Generator().manual_seed(8))
    fitter = CurveFitter(DecayMixture()).fit(t, y)
    for k, value in enumerate(fitter.trace[::4]):
        print(f"round {k} cost {value:.5f}")
    print("rates", [round(v, 3) for v in fitter.model.log_rate.exp().tolist()])
