import torch
from torch import nn


class PriceNet(nn.Module):
    def __init__(self, zones=12, numeric=7):
        super().__init__()
        self.zone = nn.Embedding(zones, 4)
        self.trunk = nn.Sequential(
            nn.Linear(numeric + 4, 32), nn.LayerNorm(32), nn.Mish(), nn.Linear(32, 1))

    def forward(self, zone, num):
        return self.trunk(torch.cat((self.zone(zone), num), 1)).squeeze(1)


class Fitter:
    def __init__(self, net, lr=0.03, decay=0.6):
        self.net, self.decay = net, decay
        heavy, light = [], []
        for p in net.parameters():
            (heavy if p.dim() > 1 else light).append(p)
        self.opt = torch.optim.AdamW(
            [{"params": light, "weight_decay": 0.0}, {"params": heavy, "weight_decay": 0.02}], lr=lr)
        self.best, self.bad = float("inf"), 0

    def after_epoch(self, value):
        if value < self.best - 1e-3:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad >= 1:
            group = self.opt.param_groups[0]
            group["lr"] *= self.decay
            self.bad = 0
        return self.opt.param_groups[0]["lr"]

    def epoch(self, zone, num, price):
        order = torch.randperm(len(price))
        for part in order.split(64):
            loss = nn.functional.smooth_l1_loss(self.net(zone[part], num[part]), price[part])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def error(self, zone, num, price):
        return (self.net(zone, num) - price).abs().mean().item()


def houses(n, effect):
    zone = torch.randint(0, 12, (n,))
    num = torch.randn(n, 7)
    price = effect[zone] + num[:, 0] + 0.5 * num[:, 1] * num[:, 2] + 0.4 * torch.randn(n)
    return zone, num, price


torch.manual_seed(15)
effect = torch.randn(12)
train, valid = houses(800, effect), houses(300, effect)
fitter = Fitter(PriceNet())
for e in range(16):
    fitter.epoch(*train)
    err = fitter.error(*valid)
    lr = fitter.after_epoch(err)
    if e % 4 == 3:
        print(f"epoch {e + 1} mae {err:.4f} lr {lr:.5f}")
