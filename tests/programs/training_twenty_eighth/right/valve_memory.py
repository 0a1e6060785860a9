"""Continual learning of valve states with averaged gradient episodic memory: conflicting gradients are projected."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)

SENSORS = 12
STATES = 3
PLANTS = 3


class ValveNet(nn.Module):
    """One shared body, one output head for each plant."""

    def __init__(self, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SENSORS, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(hidden, STATES) for _ in range(PLANTS))

    def forward(self, x, plant):
        return self.heads[plant](self.body(x))


class Memory:
    def __init__(self, per_plant=30):
        self.per_plant = per_plant
        self.store = []

    def add(self, x, y, plant):
        index = torch.randperm(len(y))[: self.per_plant]
        self.store.append((x[index], y[index], plant))

    def loss(self, net):
        return torch.stack([F.cross_entropy(net(x, plant), y) for x, y, plant in self.store]).mean()


def collect(parameters):
    """The gradients as one vector, with zeros for the parameters that took no part."""
    return torch.cat([
        torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters
    ])


def scatter(vector, parameters):
    offset = 0
    for p in parameters:
        if p.grad is not None:
            p.grad.copy_(vector[offset:offset + p.numel()].view_as(p))
        offset += p.numel()


def project(gradient, reference):
    dot = gradient @ reference
    if dot >= 0:
        return gradient, False
    return gradient - (dot / (reference @ reference)) * reference, True


def train_plant(net, memory, x, y, plant, epochs=10, batch=25, lr=0.05):
    parameters = list(net.parameters())
    optimizer = torch.optim.SGD(parameters, lr=lr)
    projected = 0
    loss = None
    for _ in range(epochs):
        for index in torch.randperm(len(y)).split(batch):
            reference = None
            if memory.store:
                optimizer.zero_grad()
                memory.loss(net).backward()
                reference = collect(parameters)
            optimizer.zero_grad(set_to_none=reference is None)
            loss = F.cross_entropy(net(x[index], plant), y[index])
            loss.backward()
            if reference is not None:
                gradient, changed = project(collect(parameters), reference)
                scatter(gradient, parameters)
                projected += changed
            optimizer.step()
    return loss.item(), projected


@torch.no_grad()
def accuracy(net, x, y, plant):
    return (net(x, plant).argmax(dim=1) == y).float().mean().item()


def make_plants():
    plants = []
    for _ in range(PLANTS):
        centers = torch.randn(STATES, SENSORS)
        y = torch.randint(0, STATES, (500,))
        x = centers[y] + torch.randn(500, SENSORS)
        plants.append((x[:300], y[:300], x[300:], y[300:]))
    return plants


def main():
    plants = make_plants()
    net = ValveNet()
    start = {name: p.detach().clone() for name, p in net.named_parameters()}
    memory = Memory()
    for plant, (x, y, _, _) in enumerate(plants):
        loss, projected = train_plant(net, memory, x, y, plant)
        memory.add(x, y, plant)
        scores = [accuracy(net, plants[i][2], plants[i][3], i) for i in range(plant + 1)]
        print(f"plant {plant}: loss {loss:.3f}, projected {projected}, accuracies", [round(s, 3) for s in scores])
    moved = {name: (p.detach() - start[name]).norm().item() for name, p in net.named_parameters()}
    print("least movement of a parameter:", round(min(moved.values()), 4))
    return net, moved, scores


if __name__ == "__main__":
    net, moved, scores = main()
