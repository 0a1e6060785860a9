"""Elastic weight consolidation: learn one task, then a second one, and hold on to the weights that mattered."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

DIM, CLASSES = 20, 4


class Task:
    def __init__(self, seed, n=1200):
        g = torch.Generator().manual_seed(seed)
        self.centres = 1.2 * torch.randn(CLASSES, DIM, generator=g)
        self.train = self.draw(n, g)
        self.test = self.draw(n, g)

    def draw(self, n, g):
        y = torch.randint(CLASSES, (n,), generator=g)
        return self.centres[y] + torch.randn(n, DIM, generator=g), y


class Consolidation:
    """Quadratic penalty around the weights after a task, with the diagonal of the empirical Fisher information."""

    def __init__(self, model, data, samples=300):
        self.model = model
        self.anchor = {n: p.data for n, p in model.named_parameters()}
        self.fisher = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
        x, y = data
        for i in range(samples):
            model.zero_grad()
            F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
            for n, p in model.named_parameters():
                self.fisher[n] += p.grad.detach() ** 2 / samples
        model.zero_grad()

    def penalty(self):
        total = 0.0
        for n, p in self.model.named_parameters():
            total = total + (self.fisher[n] * (p - self.anchor[n]) ** 2).sum()
        return 0.5 * total


def accuracy(model, data):
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def learn(model, data, epochs, memory=None, strength=0.0):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for index in torch.randperm(len(data[0])).split(60):
            loss = F.cross_entropy(model(data[0][index]), data[1][index])
            if memory is not None:
                loss = loss + strength * memory.penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


first, second = Task(1), Task(2)
model = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, CLASSES))

learn(model, first.train, epochs=8)
before = accuracy(model, first.test)
print(f"after task 1: accuracy on task 1 {before:.3f}")

memory = Consolidation(model, first.train)
learn(model, second.train, epochs=8, memory=memory, strength=2000.0)
kept, new = accuracy(model, first.test), accuracy(model, second.test)
print(f"after task 2: accuracy on task 1 {kept:.3f}, on task 2 {new:.3f}")
