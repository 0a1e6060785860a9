"""Continual learning on a stream of drifting sensor tasks with averaged gradient episodic memory (A-GEM)."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(30)

TASKS, CLASSES, DIM = 5, 4, 24
MEMORY_PER_TASK = 60


def make_task(centers, rotation, n):
    y = torch.randint(CLASSES, (n,))
    x = centers[y] + 0.8 * torch.randn(n, DIM)
    return x @ rotation, y


class SensorNet(nn.Module):
    """One body for all tasks, one head per task."""

    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(width, CLASSES) for _ in range(TASKS))

    def forward(self, x, task):
        h = self.body(x)
        if isinstance(task, int):
            return self.heads[task](h)
        logits = torch.stack([head(h) for head in self.heads], 1)
        return logits[torch.arange(len(x)), task]


class Memory:
    def __init__(self):
        self.x, self.y, self.task = [], [], []

    def add(self, x, y, task):
        keep = torch.randperm(len(x))[:MEMORY_PER_TASK]
        self.x.append(x[keep])
        self.y.append(y[keep])
        self.task.append(torch.full((len(keep),), task))

    def draw(self, n):
        idx = torch.randint(sum(map(len, self.x)), (n,))
        return torch.cat(self.x)[idx], torch.cat(self.y)[idx], torch.cat(self.task)[idx]


def read_grads(params):
    return torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in params])


def write_grads(params, vector):
    offset = 0
    for p in params:
        p.grad = vector[offset:offset + p.numel()].view_as(p).clone()
        offset += p.numel()


def agem_step(model, params, optimizer, batch, task, memory):
    (x, y), reference = batch, None
    if memory.x:
        mx, my, mt = memory.draw(64)
        optimizer.zero_grad()
        F.cross_entropy(model(mx, mt), my).backward()
        reference = read_grads(params)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, task), y)
    loss.backward()
    projected = False
    if reference is not None:
        current = read_grads(params)
        overlap = current @ reference
        if overlap < 0:
            write_grads(params, current - overlap / (reference @ reference) * reference)
            projected = True
    optimizer.step()
    return loss.item(), projected


@torch.no_grad()
def accuracies(model, tests):
    return [(model(x, t).argmax(1) == y).float().mean().item() for t, (x, y) in enumerate(tests)]


base = 0.7 * torch.randn(CLASSES, DIM)
orders = [torch.randperm(CLASSES) for _ in range(TASKS)]
rotations = [torch.linalg.qr(torch.randn(DIM, DIM))[0] for _ in range(TASKS)]
trains = [make_task(base[o], r, 800) for o, r in zip(orders, rotations)]
tests = [make_task(base[o], r, 500) for o, r in zip(orders, rotations)]

model = SensorNet()
params = list(model.parameters())
optimizer = torch.optim.SGD(params, lr=0.05)
memory = Memory()
best = []

for task, (x, y) in enumerate(trains):
    flags = []
    for epoch in range(6):
        for idx in torch.randperm(len(x)).split(32):
            loss, projected = agem_step(model, params, optimizer, (x[idx], y[idx]), task, memory)
            flags.append(projected)
    memory.add(x, y, task)
    acc = accuracies(model, tests)
    best.append(acc[task])
    print(f"task {task}  loss {loss:.3f}  projected {sum(flags) / len(flags):.2f}  accuracy " + " ".join(f"{a:.2f}" for a in acc[:task + 1]))

final = accuracies(model, tests)
print(f"mean accuracy {sum(final) / TASKS:.3f}  forgetting {sum(b - f for b, f in zip(best, final)) / TASKS:.3f}")
