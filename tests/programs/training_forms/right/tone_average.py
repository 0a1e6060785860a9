import copy
import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(21)


def build():
    return nn.Sequential(
        nn.Conv1d(1, 12, 9, stride=4), nn.BatchNorm1d(12), nn.ReLU(),
        nn.Conv1d(12, 12, 5, stride=2), nn.BatchNorm1d(12), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(12, 4),
    )


class Smoothed:
    def __init__(self, live, rate):
        self.live, self.rate = live, rate
        self.twin = copy.deepcopy(live).eval()
        self.mean = {k: p.detach().clone() for k, p in live.named_parameters()}

    @torch.no_grad()
    def update(self):
        for k, p in self.live.named_parameters():
            self.mean[k].lerp_(p, self.rate)

    @torch.no_grad()
    def predict(self, x):
        return functional_call(self.twin, {**self.mean, **dict(self.live.named_buffers())}, (x,))


def tones(n):
    y = torch.randint(4, (n,))
    t = torch.arange(200) / 200
    x = 3 * torch.sin(2 * torch.pi * (5 + 7 * y)[:, None] * t + torch.rand(n, 1) * 6) + torch.randn(n, 200) + 2
    return x.unsqueeze(1), y


live = build()
smooth = Smoothed(live, 0.1)
opt = torch.optim.SGD(live.parameters(), lr=0.1, momentum=0.8)
x_test, y_test = tones(256)
live.train()
for step in range(1, 81):
    x, y = tones(48)
    loss = F.cross_entropy(live(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth.update()
    if step % 20 == 0:
        out = smooth.predict(x_test)
        hit = (out.argmax(1) == y_test).float().mean().item()
        print(f"step {step} train {loss.item():.4f} smoothed {F.cross_entropy(out, y_test).item():.4f} acc {hit:.3f}")
