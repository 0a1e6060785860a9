"""Runoff of a second river from a model of the first: low-rank adapters on frozen layers, merged for deployment."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

INPUTS = 10


class Basin:
    """Runoff as a nonlinear response to ten drivers; a second basin is a low-rank change of the first."""

    def __init__(self, mixing, readout):
        self.mixing = mixing
        self.readout = readout

    def variant(self, strength):
        change = torch.randn(INPUTS, 1) @ torch.randn(1, INPUTS) / INPUTS ** 0.5
        return Basin(self.mixing + strength * change, self.readout)

    def draw(self, count):
        x = torch.randn(count, INPUTS)
        return x, torch.tanh(x @ self.mixing) @ self.readout + 0.02 * torch.randn(count, 1)


class LowRankLinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        self.merged = False
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        y = self.base(x)
        if not self.merged:
            y = y + self.scale * F.linear(F.linear(x, self.down), self.up)
        return y

    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scale * (self.up @ self.down).data
            self.merged = True


def build(width=48):
    return nn.Sequential(nn.Linear(INPUTS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def add_adapters(net):
    for name, child in list(net.named_children()):
        if isinstance(child, nn.Linear):
            setattr(net, name, LowRankLinear(child))
    return net


def fit(net, x, y, steps, lr, batch=128, label=""):
    trainable = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)
    for step in range(1, steps + 1):
        rows = torch.randint(len(x), (batch,))
        loss = F.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{label} step {step:4d}  loss {loss.item():.4f}")


@torch.no_grad()
def error(net, x, y):
    return F.mse_loss(net(x), y).item()


def main():
    torch.manual_seed(13)
    first = Basin(torch.randn(INPUTS, INPUTS) / INPUTS ** 0.5, torch.randn(INPUTS, 1) / INPUTS ** 0.5)
    second = first.variant(0.8)
    net = build()
    fit(net, *first.draw(4000), steps=400, lr=3e-3, label="first river")
    x_test, y_test = second.draw(1000)
    print(f"second river before adapting: {error(net, x_test, y_test):.4f}")

    adapted = add_adapters(net)
    count = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    print(f"trainable parameters: {count}")
    fit(adapted, *second.draw(600), steps=300, lr=5e-3, label="second river")
    separate = error(adapted, x_test, y_test)
    for module in adapted.modules():
        if isinstance(module, LowRankLinear):
            module.merge()
    print(f"second river after adapting: {separate:.4f}  merged: {error(adapted, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
