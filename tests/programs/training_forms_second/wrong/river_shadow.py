import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    stations: int = 11
    width: int = 40
    steps: int = 150
    batch: int = 64
    momentum: float = 0.95


class FlowNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = nn.Linear(cfg.stations, cfg.width)
        self.outer = nn.Linear(cfg.width, 1)

    def forward(self, levels):
        return self.outer(torch.nn.functional.silu(self.inner(levels))).squeeze(-1)


class Shadow:
    def __init__(self, net, momentum):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.momentum = momentum
        self.pairs = zip(self.net.parameters(), net.parameters())

    @torch.no_grad()
    def update(self):
        for slow, fast in self.pairs:
            slow.lerp_(fast, 1 - self.momentum)


def draw(cfg, gen, mixing):
    levels = torch.randn(cfg.batch, cfg.stations, generator=gen)
    flow = torch.tanh(levels @ mixing[0]) + 0.5 * (levels @ mixing[1]).abs()
    return levels, flow + 0.2 * torch.randn(cfg.batch, generator=gen)


def main():
    cfg = Config()
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(17)
    mixing = torch.randn(2, cfg.stations, generator=gen) / cfg.stations ** 0.5
    net = FlowNet(cfg)
    shadow = Shadow(net, cfg.momentum)
    opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
    for step in range(cfg.steps):
        levels, flow = draw(cfg, gen, mixing)
        loss = nn.functional.huber_loss(net(levels), flow)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shadow.update()
        if step % 30 == 29:
            print(f"step {step + 1:4d}  huber {loss.item():.4f}")
    cfg.batch = 1024
    levels, flow = draw(cfg, gen, mixing)
    with torch.no_grad():
        score = nn.functional.mse_loss(shadow.net(levels), flow)
    print(f"averaged network, held-out mse {score.item():.5f}")


if __name__ == "__main__":
    main()
