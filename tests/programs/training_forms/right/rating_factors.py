import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Plan:
    users: int = 60
    items: int = 45
    rank: int = 6
    base_rate: float = 0.08
    epochs: int = 12
    batch: int = 200
    history: list = field(default_factory=list)


class Factors(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.tables = nn.ParameterDict({
            "user": nn.Parameter(0.3 * torch.randn(plan.users, plan.rank)),
            "item": nn.Parameter(0.3 * torch.randn(plan.items, plan.rank)),
            "bias": nn.Parameter(torch.zeros(plan.items)),
        })

    def forward(self, u, i):
        t = self.tables
        return (t["user"][u] * t["item"][i]).sum(-1) + t["bias"][i]


def rate_for(plan, epoch):
    return plan.base_rate * math.exp(-0.35 * epoch)


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def ratings(plan):
    true_u = torch.randn(plan.users, 4)
    true_i = torch.randn(plan.items, 4)
    u = torch.randint(plan.users, (2000,))
    i = torch.randint(plan.items, (2000,))
    score = (true_u[u] * true_i[i]).sum(-1) + 0.3 * torch.randn(2000)
    return u, i, score


def main():
    torch.manual_seed(3)
    plan = Plan()
    u, i, y = ratings(plan)
    model = Factors(plan)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=plan.base_rate)
    for epoch in range(plan.epochs):
        set_rate(optimizer, rate_for(plan, epoch))
        total = 0.0
        for index in torch.randperm(len(u)).split(plan.batch):
            loss = F.huber_loss(model(u[index], i[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        plan.history.append(total / len(u))
        print(f"epoch {epoch:2d}  huber {plan.history[-1]:.4f}")


if __name__ == "__main__":
    main()
