import math
import torch
from torch import nn

torch.manual_seed(12)
GUESTS, DISHES, TOTAL, JOIN = 30, 40, 200, 60


class Taste(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.guest = nn.Embedding(GUESTS, dim)
        self.dish = nn.Embedding(DISHES, dim)
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, g, d):
        return (self.guest(g) * self.dish(d)).sum(-1) * self.bias[1].exp() + self.bias[0]


class Pace:
    def __init__(self, opt, warm=20):
        self.opt, self.warm = opt, warm
        self.peaks = [group["lr"] for group in opt.param_groups]

    def factor(self, step):
        if step < self.warm:
            return (step + 1) / self.warm
        return 0.5 + 0.5 * math.cos(math.pi * (step - self.warm) / TOTAL)

    def apply(self, step):
        for group, peak in zip(self.opt.param_groups, self.peaks):
            group["lr"] = peak * self.factor(step)

    def admit(self, params, peak):
        params = list(params)
        for p in params:
            p.requires_grad_(True)
        self.opt.add_param_group({"params": params, "lr": 1e-6, "weight_decay": 1e-4})
        self.peaks.append(peak)
        return peak


true_guest, true_dish = torch.randn(GUESTS, 3), torch.randn(DISHES, 3)


def orders(n=64):
    g, d = torch.randint(GUESTS, (n,)), torch.randint(DISHES, (n,))
    return g, d, (true_guest[g] * true_dish[d]).sum(-1)


net = Taste()
net.dish.requires_grad_(False)
opt = torch.optim.Adam([
    {"params": net.guest.parameters(), "lr": 3e-2},
    {"params": [net.bias], "lr": 1e-2},
])
pace = Pace(opt)
for step in range(TOTAL):
    if step == JOIN:
        pace.admit(net.dish.parameters(), peak=2e-2)
    pace.apply(step)
    g, d, stars = orders()
    loss = nn.functional.mse_loss(net(g, d), stars)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 39:
        print(f"step {step + 1}  loss {loss.item():.4f}")
