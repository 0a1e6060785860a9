from itertools import chain

import torch
from torch import nn

torch.manual_seed(79)
SIZES = {"user": 40, "film": 60}


def tower(count, width=16):
    return nn.Sequential(nn.Embedding(count, width), nn.Linear(width, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 8))


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.towers = nn.ModuleDict({side: tower(count) for side, count in SIZES.items()})
        self.level = nn.Linear(1, 1)

    def forward(self, batch):
        user, film = (self.towers[side](batch[side]) for side in SIZES)
        return self.level((user * film).sum(-1, keepdim=True)).squeeze(-1)


left, right = torch.randn(40, 5), torch.randn(60, 5)


def ratings(n):
    batch = {side: torch.randint(count, (n,)) for side, count in SIZES.items()}
    return batch, torch.tanh((left[batch["user"]] * right[batch["film"]]).sum(-1) / 2)


class Session:
    def __init__(self):
        self.model = Matcher()
        weights = chain(self.model.level.parameters(), *(t.parameters() for t in self.model.towers.values()))
        self.opt = torch.optim.Adam(weights, lr=8e-3)
        self.fixed = ratings(512)

    def fit(self, steps):
        self.model.train()
        for _ in range(steps):
            batch, stars = ratings(96)
            loss = (self.model(batch) - stars).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    def evaluate(self):
        self.model.eval()
        with torch.inference_mode():
            batch, stars = self.fixed
            return (self.model(batch) - stars).square().mean().item()


session = Session()
for epoch in range(5):
    print(f"epoch {epoch} train {session.fit(40):.4f} held out {session.evaluate():.4f}")
