"""Wide and deep CTR model with two update rhythms.

Embedding tables are updated after each micro-batch with Adagrad, as the parameter server does. The dense tower is
updated once for each four micro-batches, with the mean gradient of the four.
"""
import logging

import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("ctr")

FIELDS = {"advertiser": 200, "placement": 30, "device": 6}
N_DENSE = 5
DENSE_EVERY = 4


class Traffic:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.effects = {f: self.rng.normal(0, 0.6, n) for f, n in FIELDS.items()}
        self.cross = self.rng.normal(0, 0.5, (FIELDS["placement"], FIELDS["device"]))
        self.w = self.rng.normal(0, 0.4, N_DENSE)

    def batch(self, n):
        ids = {f: self.rng.zipf(1.3, n) % size for f, size in FIELDS.items()}
        x = self.rng.normal(size=(n, N_DENSE)).astype(np.float32)
        score = sum(self.effects[f][ids[f]] for f in FIELDS) + x @ self.w - 1.5
        score += self.cross[ids["placement"], ids["device"]]
        p = 1 / (1 + np.exp(-score))
        click = (self.rng.random(n) < p).astype(np.float32)
        return {f: torch.from_numpy(v) for f, v in ids.items()}, torch.from_numpy(x), torch.from_numpy(click)


class WideDeep(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.wide = nn.ModuleDict({f: nn.Embedding(n, 1) for f, n in FIELDS.items()})
        self.deep = nn.ModuleDict({f: nn.Embedding(n, dim) for f, n in FIELDS.items()})
        self.tower = nn.Sequential(nn.Linear(dim * len(FIELDS) + N_DENSE, 64), nn.ReLU(), nn.Linear(64, 1))
        for table in self.wide.values():
            nn.init.zeros_(table.weight)
        for table in self.deep.values():
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, ids, x):
        wide = sum(table(ids[f]) for f, table in self.wide.items())
        deep = torch.cat([table(ids[f]) for f, table in self.deep.items()] + [x], dim=1)
        return (wide + self.tower(deep)).squeeze(1)


def train(model, traffic, steps, batch_size):
    loss_fn = nn.BCEWithLogitsLoss()
    tables = [*model.wide.parameters(), *model.deep.parameters()]
    table_opt = torch.optim.Adagrad(tables, lr=0.08)
    tower_opt = torch.optim.Adam(model.tower.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(tower_opt, T_max=steps // DENSE_EVERY, eta_min=2e-4)

    # the tables see the gradient of each micro-batch at full size, the tower the mean over its window
    for p in model.tower.parameters():
        p.register_hook(lambda g: g / DENSE_EVERY)

    running, tower_updates = 0.0, 0
    for step in range(1, steps + 1):
        ids, x, click = traffic.batch(batch_size)
        loss = loss_fn(model(ids, x), click)
        loss.backward()

        table_opt.step()
        table_opt.zero_grad()
        if step % DENSE_EVERY == 0:
            nn.utils.clip_grad_norm_(model.tower.parameters(), 1.0)
            tower_opt.step()
            tower_opt.zero_grad()
            schedule.step()
            tower_updates += 1

        running += loss.item()
        if step % 200 == 0:
            log.info("step %4d  loss %.4f  tower lr %.5f", step, running / 200, schedule.get_last_lr()[0])
            running = 0.0
    return tower_updates


@torch.no_grad()
def normalized_entropy(model, ids, x, click):
    loss = nn.functional.binary_cross_entropy_with_logits(model(ids, x), click)
    base = click.mean()
    return (loss / -(base * base.log() + (1 - base) * (1 - base).log())).item()


if __name__ == "__main__":
    torch.manual_seed(8)
    traffic = Traffic(seed=8)
    holdout = traffic.batch(10000)
    model = WideDeep()
    log.info("before: normalized entropy %.4f", normalized_entropy(model, *holdout))
    updates = train(model, traffic, steps=800, batch_size=128)
    log.info("after:  normalized entropy %.4f  (%d tower updates)", normalized_entropy(model, *holdout), updates)
