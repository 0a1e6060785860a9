"""Elastic weight consolidation (Kirkpatrick et al., 2017) on three orchards that grade apples by rotated features."""
import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

DIM, CLASSES = 20, 4


@dataclass
class Options:
    epochs: int = 8
    batch: int = 50
    lr: float = 0.05
    strength: float = 20.0
    fisher_samples: int = 300
    seed: int = 21


class Orchard:
    """One task: the same four grades, seen through an orchard's own mix of the sensors."""

    def __init__(self, seed, centres):
        g = torch.Generator().manual_seed(seed)
        self.mix = torch.linalg.qr(torch.randn(DIM, DIM, generator=g)).Q
        self.train = self.draw(600, centres, g)
        self.test = self.draw(600, centres, g)

    def draw(self, n, centres, g):
        y = torch.randint(0, CLASSES, (n,), generator=g)
        x = centres[y] + torch.randn(n, DIM, generator=g)
        return x @ self.mix, y


def build_model():
    return nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))


class EWC:
    def __init__(self, strength):
        self.strength = strength
        self.memories = []  # one (anchor, importance) pair per finished task

    def consolidate(self, model, task, samples):
        anchor = {n: p.detach().clone() for n, p in model.named_parameters()}
        importance = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
        x = task.train[0][:samples]
        model.eval()
        model.zero_grad()
        for i in range(len(x)):
            log_probs = F.log_softmax(model(x[i:i + 1]), dim=1)
            # the label is drawn from the model: the true Fisher, not the empirical one
            label = torch.multinomial(log_probs.exp()[0], 1)
            F.nll_loss(log_probs, label).backward()
            for n, p in model.named_parameters():
                importance[n] += p.grad.detach() ** 2 / len(x)
        model.zero_grad()
        model.train()
        self.memories.append((anchor, importance))

    def penalty(self, model):
        total = torch.zeros(())
        for anchor, importance in self.memories:
            for n, p in model.named_parameters():
                total = total + (importance[n] * (p - anchor[n]) ** 2).sum()
        return 0.5 * self.strength * total


def fit(model, task, ewc, opts):
    optimizer = torch.optim.SGD(model.parameters(), lr=opts.lr)
    x, y = task.train
    for _ in range(opts.epochs):
        for idx in torch.randperm(len(x)).split(opts.batch):
            loss = F.cross_entropy(model(x[idx]), y[idx]) + ewc.penalty(model)
            optimizer.zero_grad()
            loss.backward()
            # the quadratic term is stiff for plain SGD
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


@torch.no_grad()
def accuracy(model, task):
    x, y = task.test
    return (model(x).argmax(dim=1) == y).float().mean().item()


def main(opts):
    torch.manual_seed(opts.seed)
    centres = 1.1 * torch.randn(CLASSES, DIM)
    tasks = [Orchard(100 + k, centres) for k in range(3)]
    model, ewc = build_model(), EWC(opts.strength)
    snapshots, table = [], []
    for k, task in enumerate(tasks):
        fit(model, task, ewc, opts)
        ewc.consolidate(model, task, opts.fisher_samples)
        snapshots.append(copy.deepcopy(model))
        table.append([accuracy(model, t) for t in tasks[: k + 1]])
        print(f"after orchard {k}: " + "  ".join(f"{a:.3f}" for a in table[-1]))
    print(f"mean accuracy at the end {sum(table[-1]) / len(table[-1]):.3f}")
    return ewc, snapshots, table, tasks


if __name__ == "__main__":
    ewc, snapshots, table, tasks = main(Options())
