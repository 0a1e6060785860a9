import math

import torch
import torch.nn.functional as F
from torch import nn


class SceneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 10, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2))
        self.heads = nn.ModuleDict(
            {"depth": nn.Conv2d(10, 1, 1), "edges": nn.Conv2d(10, 1, 1), "label": nn.Linear(10, 3)}
        )

    def forward(self, image):
        z = self.stem(image)
        return {
            "depth": self.heads["depth"](z),
            "edges": self.heads["edges"](z),
            "label": self.heads["label"](z.mean((2, 3))),
        }


class Balance(nn.Module):
    order = ("depth", "edges", "label")

    def __init__(self):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(len(self.order)))

    def forward(self, parts):
        total = self.log_var.sum()
        for s, name in zip(self.log_var, self.order):
            total = total + torch.exp(-s) * parts[name]
        return total


def scenes(n, gen):
    label = torch.randint(3, (n,), generator=gen)
    field = F.interpolate(torch.randn(n, 1, 4, 4, generator=gen), size=12, mode="bicubic")
    image = field + 0.6 * label[:, None, None, None]
    small = F.avg_pool2d(image, 2)
    goal = {"depth": 3 * small.tanh(), "edges": (small - small.mean((2, 3), keepdim=True)).abs(), "label": label}
    return image + 0.1 * torch.randn(image.shape, generator=gen), goal


def compare(out, goal):
    return {
        "depth": F.mse_loss(out["depth"], goal["depth"]),
        "edges": F.l1_loss(out["edges"], goal["edges"]),
        "label": F.cross_entropy(out["label"], goal["label"]),
    }


def main():
    torch.manual_seed(171)
    gen = torch.Generator().manual_seed(33)
    net, balance = SceneNet(), Balance()
    opt = torch.optim.Adam([*net.parameters(), *balance.parameters()], lr=8e-3)
    for step in range(150):
        image, goal = scenes(24, gen)
        parts = compare(net(image), goal)
        loss = balance(parts)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            print(step + 1, " ".join(f"{k} {v.item():.4f}" for k, v in parts.items()),
                  "weights", [round(math.exp(-s), 2) for s in balance.log_var.tolist()])


main()
