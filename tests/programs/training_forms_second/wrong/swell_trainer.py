from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(4)


@dataclass
class Config:
    epochs: int = 16
    batch: int = 40
    lr: float = 0.05
    swa_start: int = 20
    swa_lr: float = 0.02


class SwellTrainer:
    def __init__(self, net, cfg):
        self.net, self.cfg = net, cfg
        self.opt = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=0.9, nesterov=True)
        self.swa = AveragedModel(net)
        self.loss = nn.HuberLoss()

    def batches(self, x, y):
        return [(x[i], y[i]) for i in torch.randperm(len(x)).split(self.cfg.batch)]

    def fit(self, x, y):
        for epoch in range(self.cfg.epochs):
            self.net.train()
            total = 0.0
            for a, b in self.batches(x, y):
                loss = self.loss(self.net(a), b)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(a)
            if epoch >= self.cfg.swa_start:
                self.swa.update_parameters(self.net)
                for group in self.opt.param_groups:
                    group["lr"] = self.cfg.swa_lr
            if epoch % 4 == 3:
                print(f"epoch {epoch + 1}: {total / len(x):.4f}")
        update_bn(self.batches(x, y), self.swa)

    @torch.no_grad()
    def test(self, x, y):
        self.swa.eval()
        return self.loss(self.swa(x), y).item()


def buoys(count=500, length=24):
    t = torch.arange(length) / 4
    height = torch.rand(count, 1) + 0.5
    period = torch.rand(count, 1) * 2 + 1
    x = height * torch.sin(t / period + 6.28 * torch.rand(count, 1))
    return x + 0.1 * torch.randn_like(x), torch.cat([height, period], 1)


x, y = buoys()
net = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(),
                    nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
trainer = SwellTrainer(net, Config())
trainer.fit(x[:400], y[:400])
print("test loss", trainer.test(x[400:], y[400:]))
