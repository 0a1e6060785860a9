"""Policy gradient for a pricing agent whose costs depend on sampled customer decisions."""
import argparse

import torch
from torch import nn
from torch.distributions import Bernoulli, Categorical

PRICES = torch.tensor([1.0, 1.5, 2.0, 2.5, 3.0])


class Shop:
    """Demand falls with price and depends on the season; unsold goods carry over to the next day."""

    def __init__(self, n, g, days=6):
        self.n, self.days, self.g = n, days, g

    def reset(self):
        self.day = 0
        self.stock = torch.full((self.n,), 3.0)
        self.season = torch.rand(self.n, generator=self.g)
        return self.observe()

    def observe(self):
        left = torch.full((self.n,), 1 - self.day / self.days)
        return torch.stack([self.stock / 3.0, self.season, left], dim=1)

    def step(self, price):
        chance = torch.sigmoid(2.0 * (1.0 + self.season - price) + 1.0)
        sold = torch.bernoulli(chance, generator=self.g) * (self.stock > 0)
        self.stock = self.stock - sold
        self.day += 1
        return self.observe(), sold * price, self.day == self.days


class Seller(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.Tanh())
        self.price = nn.Linear(width, len(PRICES))
        self.promote = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.price(h)), Bernoulli(logits=self.promote(h).squeeze(-1))


def magic_box(log_prob):
    return torch.exp(log_prob - log_prob.detach())


def rollout(policy, shop):
    obs, over = shop.reset(), False
    log_probs, rewards = [], []
    while not over:
        price_dist, promo_dist = policy(obs)
        choice, promo = price_dist.sample(), promo_dist.sample()
        log_probs.append(price_dist.log_prob(choice) + promo_dist.log_prob(promo))
        obs, income, over = shop.step(PRICES[choice] - 0.6 * promo)
        rewards.append(income - 0.1 * promo)
    return torch.stack(log_probs), torch.stack(rewards)


def objective(log_probs, rewards):
    """Sum over days of reward, each weighted by all the decisions that led to it."""
    past = log_probs.cumsum(0)
    baseline = rewards.mean(1, keepdim=True)
    weighted = magic_box(past) * (rewards - baseline)
    return weighted.sum(0).mean() + baseline.sum()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=120)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--lr", type=float, default=5e-3)
    args, _ = ap.parse_known_args()
    torch.manual_seed(17)
    g = torch.Generator().manual_seed(17)
    policy, shop = Seller(), Shop(args.batch, g)
    opt = torch.optim.Adam(policy.parameters(), lr=args.lr)
    smooth = None
    for it in range(args.iterations):
        log_probs, rewards = rollout(policy, shop)
        loss = -objective(log_probs, rewards)
        opt.zero_grad()
        loss.backward()
        opt.step()
        income = rewards.sum(0).mean().item()
        smooth = income if smooth is None else 0.9 * smooth + 0.1 * income
        if it % 20 == 19:
            print(f"iteration {it + 1:3d}  objective {-loss.item():.3f}  mean income {smooth:.3f}")


if __name__ == "__main__":
    main()
