"""How much bread to bake: as little waste as possible while at most 8 % of the days run short."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Plan:
    allowed: float = 0.08
    rounds: int = 1500
    batch: int = 256
    lr: float = 3e-3
    price_lr: float = 0.05
    sharpness: float = 0.08
    seed: int = 21


def make_days(n, g):
    """Weekday, weather and holiday drive the demand; quiet shops are more predictable than busy ones."""
    weekday = torch.randint(7, (n,), generator=g)
    weather = torch.randn(n, 3, generator=g)
    holiday = (torch.rand(n, generator=g) < 0.1).float()
    weekly = torch.tensor([0.9, 0.8, 0.8, 0.9, 1.2, 1.6, 1.3])
    level = weekly[weekday] * (1 + 0.25 * torch.tanh(weather[:, 0]) - 0.15 * torch.relu(weather[:, 1])) + 0.6 * holiday
    spread = 0.05 + 0.2 * torch.sigmoid(2 * weather[:, 2])
    demand = (level + spread * torch.randn(n, generator=g)).clamp(min=0)
    features = torch.cat([F.one_hot(weekday, 7).float(), weather, holiday.unsqueeze(1)], 1)
    return features, demand


class Baker(nn.Module):
    def __init__(self, n_in=11, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return F.softplus(self.net(x)).squeeze(1)


class Price(nn.Module):
    """What a short day costs; it is always positive."""

    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(-2.0))

    def forward(self):
        return F.softplus(self.raw)


def waste_of(baked, demand):
    return F.relu(baked - demand).mean()


def short_days(baked, demand):
    return (baked < demand).float().mean()


def soft_short_days(baked, demand, sharpness):
    return torch.sigmoid((demand - baked) / sharpness).mean()


def train(plan, features, demand, g):
    baker, price = Baker(), Price()
    bake_opt = torch.optim.Adam(baker.parameters(), lr=plan.lr)
    price_opt = torch.optim.SGD(price.parameters(), lr=plan.price_lr, maximize=True)
    bake_schedule = torch.optim.lr_scheduler.CosineAnnealingLR(bake_opt, plan.rounds)
    for r in range(1, plan.rounds + 1):
        pick = torch.randint(len(features), (plan.batch,), generator=g)
        baked, wanted = baker(features[pick]), demand[pick]

        # the baker answers to the present price of a short day
        waste = waste_of(baked, wanted)
        bill = waste + price().detach() * soft_short_days(baked, wanted, plan.sharpness)
        bake_opt.zero_grad()
        bill.backward()
        bake_opt.step()
        bake_schedule.step()

        # the price rises while too many days run short; counted days, not the smooth stand-in
        excess = short_days(baked, wanted) - plan.allowed
        price_opt.zero_grad()
        (price() * excess).backward()
        price_opt.step()

        if r % 250 == 0:
            print(f"round {r}  price {price().item():.3f}  bill {bill.item():.3f}  waste {waste.item():.3f}")
    return baker, price


@torch.no_grad()
def main(plan=Plan()):
    torch.manual_seed(plan.seed)
    g = torch.Generator().manual_seed(plan.seed)
    features, demand = make_days(8000, g)
    test_features, test_demand = make_days(4000, g)
    with torch.enable_grad():
        baker, price = train(plan, features, demand, g)
    baked = baker(test_features)
    flat = torch.quantile(demand, 1 - plan.allowed).expand_as(test_demand)
    for name, amount in (("learned", baked), ("same every day", flat)):
        print(f"{name}: waste {waste_of(amount, test_demand):.3f}  short {short_days(amount, test_demand):.3f}")
    return baker, price, test_features, test_demand


if __name__ == "__main__":
    baker, price, test_features, test_demand = main()
