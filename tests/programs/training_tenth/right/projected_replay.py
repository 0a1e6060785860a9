"""Continual learning on five tasks with averaged gradient episodic memory and one frozen head per finished task."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
FEATURES, CLASSES, TASKS, PER_TASK = 20, 4, 5, 64


class MultiHead(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(width, CLASSES) for _ in range(TASKS))

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


class Memory:
    def __init__(self):
        self.items = []

    def add(self, x, y, task):
        keep = torch.randperm(len(x))[:PER_TASK]
        self.items.append((x[keep].clone(), y[keep].clone(), task))

    def loss(self, model, batch=32):
        losses = []
        for x, y, task in self.items:
            index = torch.randint(0, len(x), (batch,))
            losses.append(F.cross_entropy(model(x[index], task), y[index]))
        return torch.stack(losses).mean()


def make_task(count, centres):
    labels = torch.randint(0, CLASSES, (count,))
    return centres[labels, torch.randint(0, 2, (count,))] + 0.4 * torch.randn(count, FEATURES), labels


def read_grads(params):
    return torch.cat([p.grad.flatten() for p in params])


@torch.no_grad()
def write_grads(params, vector):
    for p, piece in zip(params, vector.split([p.numel() for p in params])):
        p.grad.copy_(piece.view_as(p))


def project(grad, reference):
    overlap = grad @ reference
    if overlap >= 0:
        return grad, False
    return grad - overlap / (reference @ reference) * reference, True


def train_task(model, task, data, memory, projecting, epochs=10):
    x, y = data
    trunk = list(model.trunk.parameters())
    optimizer = torch.optim.SGD([*trunk, *model.heads[task].parameters()], lr=0.2)
    projected = steps = 0
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(32):
            reference = None
            if projecting and memory.items:
                model.zero_grad()
                memory.loss(model).backward()
                reference = read_grads(trunk)
            optimizer.zero_grad()
            F.cross_entropy(model(x[index], task), y[index]).backward()
            if reference is not None:
                grad, changed = project(read_grads(trunk), reference)
                write_grads(trunk, grad)
                projected += changed
            optimizer.step()
            steps += 1
    model.heads[task].requires_grad_(False)
    return projected / steps


@torch.no_grad()
def accuracy(model, data, task):
    return (model(data[0], task).argmax(1) == data[1]).float().mean().item()


def run(projecting):
    torch.manual_seed(1)
    centres = 0.5 * torch.randn(TASKS, CLASSES, 2, FEATURES)
    model, memory = MultiHead(), Memory()
    tests, shares = [make_task(500, c) for c in centres], []
    for task in range(TASKS):
        data = make_task(512, centres[task])
        shares.append(train_task(model, task, data, memory, projecting))
        memory.add(*data, task)
    final = [accuracy(model, tests[t], t) for t in range(TASKS)]
    return sum(final) / TASKS, shares


plain, _ = run(projecting=False)
average, shares = run(projecting=True)
print(f"accuracy over all tasks: plain {plain:.3f}, projected {average:.3f}")
print("share of projected steps", [round(s, 2) for s in shares])
