import math
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(8)


class Kiln:
    def __init__(self, steps):
        self.net = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.2, momentum=0.9)
        self.plan = LambdaLR(self.opt, lambda s: 0.5 * (1 + math.cos(math.pi * s / (2 * steps))))
        self.cooled = False
        self.smooth = None

    def cool(self, factor=0.05):
        group = self.opt.param_groups[0]
        group.update(lr=group["lr"] * factor)
        self.cooled = True

    def watch(self, step, value):
        self.smooth = value if self.smooth is None else 0.9 * self.smooth + 0.1 * value
        if step >= 60 and not self.cooled:
            self.cool()

    def update(self, step, setting, heat):
        loss = nn.functional.mse_loss(self.net(setting), heat)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.plan.step()
        self.watch(step, loss.item())


def readings(n=8):
    setting = torch.rand(n, 2) * 2 - 1
    heat = torch.sin(3 * setting[:, :1]) * setting[:, 1:] + 0.5 * torch.randn(n, 1)
    return setting, heat


STEPS = 160
kiln = Kiln(STEPS)
for step in range(STEPS):
    kiln.update(step, *readings())
    if step % 40 == 39:
        print(f"step {step + 1}  smooth loss {kiln.smooth:.4f}")

with torch.no_grad():
    setting = torch.rand(500, 2) * 2 - 1
    clean = torch.sin(3 * setting[:, :1]) * setting[:, 1:]
    print(f"curve error {nn.functional.mse_loss(kiln.net(setting), clean):.5f}")
