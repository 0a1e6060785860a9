from functools import partial
import io
import math
import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(43)
TOTAL = 120


def ramp(step, warm, total):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))


class Run:
    def __init__(self, source=None):
        self.net = nn.Sequential(nn.Linear(7, 40), nn.Mish(), nn.Linear(40, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.01)
        saved = None
        if source is not None:
            saved = torch.load(source)
            self.net.load_state_dict(saved["net"])
            self.opt.load_state_dict(saved["opt"])
        self.plan = LambdaLR(self.opt, partial(ramp, warm=15, total=TOTAL))
        self.done = saved["done"] if saved else 0

    def save(self):
        target = io.BytesIO()
        state = {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "done": self.done}
        torch.save(state, target)
        target.seek(0)
        return target

    def go(self, until, data):
        x, y = data
        while self.done < until:
            rows = torch.randint(len(x), (64,))
            loss = F.mse_loss(self.net(x[rows]).squeeze(1), y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.plan.step()
            self.done += 1
            if self.done % 20 == 0:
                print(f"step {self.done} loss {loss.item():.4f} rate {self.plan.get_last_lr()[0]:.5f}")


x = torch.randn(800, 7)
y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.1 * torch.randn(800)
first = Run()
first.go(70, (x, y))
second = Run(first.save())
second.go(TOTAL, (x, y))
print(f"final fit {F.mse_loss(second.net(x).squeeze(1), y).item():.4f}")
