"""First-order MAML for few-shot classification: each task adapts its own copy, and the query gradient of the copy
is used as the gradient of the shared initialisation."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(1)

WAYS, SHOTS, DIM, NOISE_DIM = 3, 4, 6, 10
MIX = torch.randn(DIM + NOISE_DIM, DIM + NOISE_DIM) / (DIM + NOISE_DIM) ** 0.5


def sample_task():
    """Classes differ only in a few of the coordinates, which are hidden behind a rotation shared by all tasks."""
    centres = torch.randn(WAYS, DIM) * 1.5
    labels = torch.arange(WAYS).repeat(2 * SHOTS)
    signal = centres[labels] + 0.4 * torch.randn(len(labels), DIM)
    x = torch.cat([signal, 1.5 * torch.randn(len(labels), NOISE_DIM)], 1) @ MIX
    half = WAYS * SHOTS
    return (x[:half], labels[:half]), (x[half:], labels[half:])


def adapt(model, support, lr=0.2, steps=4):
    learner = copy.deepcopy(model)
    opt = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        F.cross_entropy(learner(support[0]), support[1]).backward()
        opt.step()
    learner.zero_grad()
    return learner


def meta_gradient(model, tasks):
    """Average over the tasks of the query gradients at the adapted weights, written into model.grad."""
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    total = 0.0
    for support, query in tasks:
        learner = adapt(model, support)
        loss = F.cross_entropy(learner(query[0]), query[1])
        loss.backward()
        total += loss.item()
        for p, q in zip(model.parameters(), learner.parameters()):
            p.grad.add_(q.grad, alpha=1.0 / len(tasks))
    return total / len(tasks)


def evaluate(model, tasks):
    hits = 0.0
    for support, query in tasks:
        learner = adapt(model, support)
        with torch.no_grad():
            hits += (learner(query[0]).argmax(1) == query[1]).float().mean().item()
    return hits / len(tasks)


def main():
    model = nn.Sequential(nn.Linear(DIM + NOISE_DIM, 32), nn.ReLU(), nn.Linear(32, WAYS))
    meta_opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    held_out = [sample_task() for _ in range(40)]
    before = evaluate(model, held_out)
    for iteration in range(1, 101):
        loss = meta_gradient(model, [sample_task() for _ in range(4)])
        meta_opt.step()
        if iteration % 25 == 0:
            print(f"iteration {iteration}: query loss {loss:.3f}")
    after = evaluate(model, held_out)
    print(f"few-shot accuracy: {before:.3f} before, {after:.3f} after")


if __name__ == "__main__":
    main()
