import io
import math
from functools import partial

import torch
from torch import nn

torch.manual_seed(53)
TOTAL = 80


def ramp_then_cosine(k, warm, total):
    if k < warm:
        return (k + 1) / warm
    return 0.5 + 0.5 * math.cos(math.pi * (k - warm) / (total - warm))


def waveform(n):
    x = torch.rand(n, 1) * 4 - 2
    return x, torch.sin(3 * x) * torch.exp(-x.square() / 3)


class Run:
    def __init__(self, saved=None):
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.03, momentum=0.9, nesterov=True)
        self.rates = torch.optim.lr_scheduler.LambdaLR(self.optimizer, partial(ramp_then_cosine, warm=8, total=TOTAL))
        self.done = 0
        if saved is not None:
            pack = torch.load(io.BytesIO(saved), weights_only=True)
            self.net.load_state_dict(pack["net"])
            self.optimizer.load_state_dict(pack["optimizer"])
            self.done = pack["done"]

    def pack(self):
        out = io.BytesIO()
        torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "done": self.done}, out)
        return out.getvalue()

    def go(self, until):
        while self.done < until:
            x, y = waveform(64)
            loss = nn.functional.mse_loss(self.net(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.rates.step()
            self.done += 1
        rate = self.optimizer.param_groups[0]["lr"]
        print(f"step {self.done:3d}  loss {loss.item():.5f}  rate {rate:.4f}")


first = Run()
first.go(25)
first.go(50)
blob = first.pack()
second = Run(saved=blob)
second.go(65)
second.go(TOTAL)
