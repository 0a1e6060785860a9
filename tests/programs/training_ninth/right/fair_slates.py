"""Slate ranking for a film service with a floor on the exposure of independent studios (constrained training)."""
import torch
import torch.nn.functional as F
from torch import nn

USERS, FILMS, DIM = 300, 80, 12
FLOOR = 0.30


def world(gen):
    taste = torch.randn(USERS, 5, generator=gen)
    film = torch.randn(FILMS, 5, generator=gen)
    indie = torch.rand(FILMS, generator=gen) < 0.35
    appeal = 0.8 * torch.randn(FILMS, generator=gen) - 1.2 * indie.float()
    return taste @ film.T / 5 ** 0.5 + appeal, indie


def watched(utility, n, gen):
    user = torch.randint(0, USERS, (n,), generator=gen)
    film = torch.multinomial(utility[user].softmax(1), 1, generator=gen).squeeze(1)
    return user, film


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM)
        self.film = nn.Embedding(FILMS, DIM)
        self.bias = nn.Parameter(torch.zeros(FILMS))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.film.weight, std=0.1)

    def forward(self, user):
        return self.user(user) @ self.film.weight.T + self.bias


class Multiplier(nn.Module):
    def __init__(self, start=-3.0):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(start))

    @property
    def value(self):
        return F.softplus(self.raw)

    def forward(self, slack):
        return self.value * slack


def exposure(logits, indie):
    return logits.softmax(1)[:, indie].sum(1).mean()


def report(ranker, utility, indie):
    with torch.no_grad():
        logits = ranker(torch.arange(USERS))
        top = logits.topk(10, dim=1).indices
        gain = utility.gather(1, top).mean() / utility.topk(10, dim=1).values.mean()
        return exposure(logits, indie).item(), gain.item()


def train(steps=1000, batch=256, constrained=True):
    torch.manual_seed(13)
    gen = torch.Generator().manual_seed(13)
    utility, indie = world(gen)
    user, film = watched(utility, 12000, gen)
    ranker, multiplier = Ranker(), Multiplier()
    rank_opt = torch.optim.Adam(ranker.parameters(), lr=1e-2, weight_decay=1e-4)
    price_opt = torch.optim.SGD(multiplier.parameters(), lr=0.8, maximize=True)
    trace = []
    for step in range(steps):
        idx = torch.randint(0, len(user), (batch,), generator=gen)
        logits = ranker(user[idx])
        fit = F.cross_entropy(logits, film[idx])
        share = exposure(logits, indie)
        loss = fit + multiplier(FLOOR - share) if constrained else fit
        rank_opt.zero_grad()
        price_opt.zero_grad()
        loss.backward()
        rank_opt.step()
        if constrained:
            price_opt.step()
        trace.append((loss.item(), fit.item(), share.item(), multiplier.value.item()))
        if step % 200 == 0:
            print("%4d  loss %.3f  fit %.3f  share %.3f  price %.3f" % (step, *trace[-1]))
    return ranker, trace, report(ranker, utility, indie)


if __name__ == "__main__":
    ranker, trace, (share, gain) = train()
    print(f"exposure {share:.3f} (floor {FLOOR})  relative gain of the top ten {gain:.3f}  price {trace[-1][3]:.2f}")
