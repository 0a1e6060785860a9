import torch
from torch import nn
from torch.func import jacrev, vmap

torch.manual_seed(79)


class Decay:
    """u' = -2u + cos(3t), u(0) = 1, on [0, 2]."""

    def __init__(self, width=16):
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.optimizer = torch.optim.LBFGS(self.net.parameters(), lr=1.0, max_iter=4, history_size=10)
        self.rates = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=10, gamma=0.5)
        self.times = torch.linspace(0, 2, 40).unsqueeze(1)
        self.trace = []

    def u(self, t):
        return 1 + t * self.net(t)

    def residual(self):
        slope = vmap(jacrev(lambda t: self.u(t).squeeze(0)))(self.times)
        return slope + 2 * self.u(self.times) - torch.cos(3 * self.times)

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.residual().square().mean()
        loss.backward()
        self.trace.append(loss.item())
        self.rates.step()
        return loss

    def solve(self, rounds):
        for k in range(rounds):
            self.optimizer.step(self.closure)
            if k % 10 == 9:
                rate = self.rates.get_last_lr()[0]
                print(f"round {k + 1:2d}  residual {self.trace[-1]:.3e}  rate {rate:.2e}")


def exact(t):
    swing = (2 * torch.cos(3 * t) + 3 * torch.sin(3 * t)) / 13
    return swing + (1 - 2 / 13) * torch.exp(-2 * t)


problem = Decay()
problem.solve(rounds=40)
with torch.no_grad():
    gap = (problem.u(problem.times) - exact(problem.times)).abs().max().item()
print(f"evaluations {len(problem.trace)}  largest error {gap:.5f}")
