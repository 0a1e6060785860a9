import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(33)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = nn.Linear(9, 32, bias=False)
        self.ends = nn.ModuleDict({"torque": nn.Linear(32, 1), "heat": nn.Linear(32, 1), "noise": nn.Linear(32, 1)})

    def forward(self, x):
        h = torch.tanh(self.core(x))
        return {k: end(h).squeeze(-1) for k, end in self.ends.items()}


def motors(n):
    x = torch.randn(n, 9)
    return x, {"torque": x[:, 0] * x[:, 1], "heat": 2 * x[:, 2] - x[:, 0], "noise": torch.sin(3 * x[:, 3])}


def slopes(net, losses):
    found = {}
    for task, loss in losses.items():
        if net.core.weight.grad is not None:
            net.core.weight.grad.zero_()
        loss.backward(retain_graph=True)
        found[task] = net.core.weight.grad.flatten()
    return found


def project(found):
    merged = torch.zeros_like(next(iter(found.values())))
    for a, g in found.items():
        g = g.clone()
        for b, other in found.items():
            dot = torch.dot(g, other)
            if a != b and dot < 0:
                g -= dot / other.square().sum() * other
        merged += g
    return merged


net = Shared()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(120):
    x, truth = motors(64)
    out = net(x)
    losses = {k: F.mse_loss(out[k], truth[k]) for k in out}
    opt.zero_grad()
    found = slopes(net, losses)
    net.core.weight.grad = project(found).view_as(net.core.weight)
    opt.step()
    if step % 30 == 29:
        print(step + 1, {k: round(v.item(), 4) for k, v in losses.items()})
