import copy

import torch
from torch import nn

torch.manual_seed(67)


class Twins(nn.Module):
    def __init__(self, live):
        super().__init__()
        self.pair = nn.ModuleDict({"live": live, "slow": copy.deepcopy(live)})

    def forward(self, a, b):
        return self.pair["live"](a), self.pair["slow"](b)

    @torch.no_grad()
    def follow(self, rate):
        slow, live = (list(self.pair[k].parameters()) for k in ("slow", "live"))
        torch._foreach_lerp_(slow, live, rate)


class Consistency:
    def __init__(self, twins):
        self.twins = twins
        self.opt = torch.optim.AdamW(twins.pair["live"].parameters(), lr=3e-3)

    def update(self, x, y, free):
        jitter = lambda t: t + 0.2 * torch.randn_like(t)
        live, slow = self.twins(jitter(free), jitter(free))
        labelled = nn.functional.cross_entropy(self.twins.pair["live"](x), y)
        agree = (live.softmax(-1) - slow.softmax(-1)).square().sum(-1).mean()
        loss = labelled + 2.0 * agree
        self.twins.zero_grad()
        loss.backward()
        self.opt.step()
        self.twins.follow(0.02)
        return labelled.item(), agree.item()


centres = torch.randn(4, 9)


def patients(n):
    y = torch.randint(4, (n,))
    return centres[y] + 0.8 * torch.randn(n, 9), y


torch.manual_seed(68)
twins = Twins(nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 4)))
study = Consistency(twins)
few_x, few_y = patients(24)
for it in range(90):
    a, b = study.update(few_x, few_y, patients(96)[0])
    if it % 30 == 29:
        print(f"{it + 1}: labelled {a:.4f} agree {b:.4f}")
with torch.no_grad():
    x, y = patients(400)
    print("slow loss", nn.functional.cross_entropy(twins.pair["slow"](x), y).item())
