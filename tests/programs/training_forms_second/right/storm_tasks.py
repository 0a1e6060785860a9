import torch
from torch import nn


class Weather(nn.Module):
    tasks = ("rain", "wind", "hail")

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(15, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.heads = nn.ModuleDict({t: nn.Linear(16, 1) for t in self.tasks})

    def forward(self, x):
        z = self.trunk(x)
        return {t: head(z).squeeze(1) for t, head in self.heads.items()}


def project(grads):
    merged = []
    for name, own in grads.items():
        own = own.clone()
        for other_name, other in grads.items():
            if other_name == name:
                continue
            dot = torch.dot(own, other)
            if dot < 0:
                own -= dot / other.pow(2).sum().clamp_min(1e-12) * other
        merged.append(own)
    return torch.stack(merged).sum(0)


class Surgeon:
    def __init__(self, net, lr):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.8)
        self.shared = dict(net.trunk.named_parameters())

    def step(self, x, targets):
        out = self.net(x)
        collected = {}
        report = {}
        self.opt.zero_grad(set_to_none=False)
        for task, target in targets.items():
            loss = nn.functional.mse_loss(out[task], target)
            for p in self.shared.values():
                if p.grad is not None:
                    p.grad.zero_()
            loss.backward(retain_graph=True)
            collected[task] = {n: p.grad.clone() for n, p in self.shared.items()}
            report[task] = loss.item()
        for n, p in self.shared.items():
            p.grad = project({t: g[n].flatten() for t, g in collected.items()}).view_as(p)
        self.opt.step()
        return report


def readings(n, gen, w):
    x = torch.randn(n, 15, generator=gen)
    z = x @ w
    return x, {"rain": z[:, 0].sin(), "wind": z[:, 0] - z[:, 1].abs(), "hail": -z[:, 0] * z[:, 2].sigmoid()}


if __name__ == "__main__":
    torch.manual_seed(40)
    gen = torch.Generator().manual_seed(9)
    w = torch.randn(15, 3, generator=gen) / 3
    surgeon = Surgeon(Weather(), lr=0.03)
    for i in range(180):
        report = surgeon.step(*readings(48, gen, w))
        if i % 30 == 29:
            print(i + 1, "  ".join(f"{t} {v:.4f}" for t, v in report.items()))
