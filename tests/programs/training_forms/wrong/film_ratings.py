from functools import partial

import torch
import torch.nn.functional as F

torch.manual_seed(60)
PEOPLE, FILMS, RANK = 50, 40, 4


def survey():
    truth = torch.randn(PEOPLE, 3) @ torch.randn(3, FILMS)
    seen = (torch.rand(PEOPLE, FILMS) < 0.35).float()
    given = truth + 0.2 * torch.randn_like(truth)
    return torch.where(seen > 0, given, torch.zeros(())), seen, truth


class Factorizer:
    def __init__(self):
        self.factors = {
            "person": (0.5 * torch.randn(PEOPLE, RANK)).requires_grad_(),
            "film": (0.5 * torch.randn(FILMS, RANK)).requires_grad_(),
            "level": torch.zeros(FILMS, requires_grad=True),
        }
        self.opt = torch.optim.Adam(self.factors.values(), lr=0.03)
        self.measure = partial(F.smooth_l1_loss, beta=0.5)

    def table(self, rows=slice(None)):
        f = self.factors
        return f["person"][rows] @ f["film"].T + f["level"]

    def penalty(self):
        return sum(v.square().mean() for v in self.factors.values())

    def miss(self, ratings, seen, rows):
        gap = self.measure(self.table(rows), ratings[rows])
        kept = seen[rows]
        return torch.mul(kept, gap).sum().div(kept.sum())

    def fit(self, ratings, seen, epochs=60):
        for e in range(epochs):
            for rows in torch.randperm(PEOPLE).split(25):
                loss = self.miss(ratings, seen, rows) + 1e-3 * self.penalty()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            if e % 20 == 19:
                print(f"epoch {e + 1}: loss {loss.item():.4f}")


ratings, seen, truth = survey()
model = Factorizer()
model.fit(ratings, seen)
with torch.no_grad():
    hidden = seen == 0
    print(f"mae on unseen films {(model.table() - truth)[hidden].abs().mean():.4f}")
