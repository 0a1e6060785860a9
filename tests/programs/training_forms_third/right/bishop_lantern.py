from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(2)


class Hospital:
    def __init__(self, shift):
        self.net = nn.Sequential(nn.Linear(9, 24), nn.Tanh(), nn.Linear(24, 1))
        self.opt = torch.optim.Adagrad(self.net.parameters(), lr=0.05)
        self.x = torch.randn(128, 9) + shift
        self.y = (self.x[:, :1] * shift + torch.sin(self.x[:, 1:2])) + 0.1 * torch.randn(128, 1)

    def fit(self, steps):
        for _ in range(steps):
            pick = torch.randint(128, (32,))
            loss = torch.mean((self.net(self.x[pick]) - self.y[pick]) ** 2)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def blend(self, shared, own):
        for name, p in self.net.named_parameters():
            p.copy_(own * p + (1 - own) * shared[name])

    @torch.no_grad()
    def error(self):
        return torch.mean((self.net(self.x) - self.y) ** 2).item()


class Coordinator:
    def __init__(self, sites):
        self.sites = sites

    def gather(self):
        first, *rest = (site.net.state_dict() for site in self.sites)
        pooled = OrderedDict((name, value.clone()) for name, value in first.items())
        for state in rest:
            torch._foreach_add_(list(pooled.values()), list(state.values()))
        torch._foreach_div_(list(pooled.values()), len(self.sites))
        return pooled


sites = [Hospital(s) for s in (1.5, -1.0, 0.2, -0.4)]
coordinator = Coordinator(sites)
for rnd in range(8):
    for site in sites:
        site.fit(10)
    shared = coordinator.gather()
    for site in sites:
        site.blend(shared, own=0.8)
    print("round", rnd, " ".join(f"{site.error():.4f}" for site in sites))
