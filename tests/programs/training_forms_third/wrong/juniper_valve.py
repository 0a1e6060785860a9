from dataclasses import dataclass, replace

import torch
from torch import nn

torch.manual_seed(61)


@dataclass(frozen=True)
class Champion:
    error: float = float("inf")
    epoch: int = -1
    net: nn.Module | None = None

    def challenge(self, error, epoch, net):
        if error < self.error:
            return replace(self, error=error, epoch=epoch, net=net)
        return self


class Ranker(nn.Module):
    def __init__(self, users, films, dim=24):
        super().__init__()
        self.users = nn.Embedding(users, dim)
        self.films = nn.Embedding(films, dim)
        self.lift = nn.Embedding(films, 1)
        nn.init.normal_(self.users.weight, std=0.2)
        nn.init.normal_(self.films.weight, std=0.2)
        nn.init.zeros_(self.lift.weight)

    def forward(self, pairs):
        user, film = pairs.unbind(1)
        return (self.users(user) * self.films(film)).sum(1) + self.lift(film).squeeze(1)


def ratings(n, users=50, films=40):
    taste, genre = torch.randn(users, 2), torch.randn(films, 2)
    pairs = torch.stack([torch.randint(0, users, (n,)), torch.randint(0, films, (n,))], dim=1)
    stars = (taste[pairs[:, 0]] * genre[pairs[:, 1]]).sum(1) + torch.randn(n)
    return pairs, stars


def error_of(net, pairs, stars):
    with torch.no_grad():
        return nn.functional.mse_loss(net(pairs), stars).item()


pairs, stars = ratings(1500)
fit, check = slice(0, 900), slice(900, 1500)
ranker = Ranker(50, 40)
optimizer = torch.optim.Adam(ranker.parameters(), lr=0.02)
champion = Champion()
for epoch in range(12):
    for rows in torch.randperm(900).split(150):
        loss = nn.functional.mse_loss(ranker(pairs[fit][rows]), stars[fit][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    error = error_of(ranker, pairs[check], stars[check])
    champion = champion.challenge(error, epoch, ranker)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  train {loss.item():.3f}  check {error:.3f}")

print(f"best epoch {champion.epoch + 1}; its ranker on the check part: {error_of(champion.net, pairs[check], stars[check]):.3f}")
