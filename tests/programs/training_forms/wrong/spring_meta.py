import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(6)


class SpringNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(2, 32), nn.Linear(32, 32)])
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        for layer in self.inner:
            x = torch.tanh(layer(x))
        return self.out(x)


def springs(count):
    for stiff, damp in (torch.rand(count, 2) * 2 + 0.5).tolist():
        state = torch.randn(40, 2)
        force = -stiff * state[:, :1] - damp * state[:, 1:]
        yield (state[:20], force[:20]), (state[20:], force[20:])


class MetaLearner:
    def __init__(self, net, rate, rounds):
        self.net, self.rate, self.rounds = net, rate, rounds
        self.opt = torch.optim.Adam(net.parameters(), lr=2e-3)

    def cost(self, weights, data):
        x, y = data
        return F.mse_loss(functional_call(self.net, weights, (x,)), y)

    def adapt(self, support):
        fast = dict(self.net.named_parameters())
        for _ in range(self.rounds):
            slope = torch.autograd.grad(self.cost(fast, support), list(fast.values()))
            with torch.no_grad():
                torch._foreach_add_(list(fast.values()), slope, alpha=-self.rate)
        return fast

    def outer(self, tasks):
        self.opt.zero_grad()
        total, params = 0.0, list(self.net.parameters())
        for p in params:
            p.grad = torch.zeros_like(p)
        for support, query in tasks:
            fast = self.adapt(support)
            loss = self.cost(fast, query)
            for p, g in zip(params, torch.autograd.grad(loss, list(fast.values()))):
                p.grad += g / 4
            total += loss.item() / 4
        self.opt.step()
        return total


learner = MetaLearner(SpringNet(), rate=0.05, rounds=3)
for it in range(1, 61):
    query_loss = learner.outer(springs(4))
    if it % 15 == 0:
        print(f"outer step {it} query loss {query_loss:.4f}")
