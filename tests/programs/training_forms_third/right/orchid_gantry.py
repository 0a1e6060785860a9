from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)


class Visit(NamedTuple):
    context: torch.Tensor
    shown: torch.Tensor
    gain: torch.Tensor


class Shop:
    def __init__(self, features, banners):
        self.appeal = torch.randn(features, banners)

    def gains(self, context, shown):
        mean = (context @ self.appeal).gather(1, shown[:, None]).squeeze(1)
        return torch.tanh(mean) + context[:, 0] + 0.2 * torch.randn(len(shown))

    def best(self, context):
        return (context @ self.appeal).argmax(1)


class Agent(nn.Module):
    def __init__(self, features, banners, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, width), nn.Tanh())
        self.choice = nn.Linear(width, banners)
        self.baseline = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, 1))

    def visit(self, shop, context):
        with torch.no_grad():
            odds = F.softmax(self.choice(self.body(context)), dim=1)
            shown = torch.multinomial(odds, 1).squeeze(1)
        return Visit(context, shown, shop.gains(context, shown))

    def objective(self, visit):
        surprise = F.cross_entropy(self.choice(self.body(visit.context)), visit.shown, reduction="none")
        expected = self.baseline(visit.context).flatten()
        surplus = torch.sub(visit.gain, expected.detach())
        actor = torch.dot(surprise, surplus) / len(surplus)
        return actor + 0.5 * F.smooth_l1_loss(expected, visit.gain)


shop = Shop(features=6, banners=4)
agent = Agent(6, 4)
optimizer = torch.optim.RMSprop(agent.parameters(), lr=3e-3)
for day in range(200):
    visit = agent.visit(shop, torch.randn(96, 6))
    loss = agent.objective(visit)
    for p in agent.parameters():
        p.grad = None
    loss.backward()
    optimizer.step()
    if day % 50 == 49:
        print(f"day {day + 1:3d}  mean gain {visit.gain.mean().item():+.3f}  loss {loss.item():+.3f}")

with torch.no_grad():
    context = torch.randn(1000, 6)
    chosen = agent.choice(agent.body(context)).argmax(1)
    print("best banner chosen", (chosen == shop.best(context)).float().mean().item())
    print("baseline spread", agent.baseline(context).std().item())
