"""PackNet-like continual learning: every task trains, prunes, and leaves the freed weights to the next one."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
DIM, HIDDEN, CLASSES, TASKS = 32, 64, 8, 4
KEEP = 0.3                      # share of the still free weights that a task may keep


def make_task(seed, n_train=500, n_test=500):
    gen = torch.Generator().manual_seed(seed)
    lift = torch.randn(6, DIM, generator=gen) / 6 ** 0.5
    centers = 1.6 * torch.randn(CLASSES * 2, 6, generator=gen)

    def sample(n):
        mode = torch.randint(0, 2 * CLASSES, (n,), generator=gen)
        latent = centers[mode] + 0.5 * torch.randn(n, 6, generator=gen)
        return torch.tanh(latent @ lift) + 0.1 * torch.randn(n, DIM, generator=gen), mode % CLASSES

    return sample(n_train), sample(n_test)


class PackedMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)])
        self.heads = nn.ModuleList(nn.Linear(HIDDEN, CLASSES) for _ in range(TASKS))
        for i, layer in enumerate(self.layers):
            self.register_buffer(f"owner{i}", torch.full_like(layer.weight, -1, dtype=torch.long))

    def owner(self, i):
        return getattr(self, f"owner{i}")

    def forward(self, x, task, dense=False):
        for i, layer in enumerate(self.layers):
            own = self.owner(i)
            visible = (own >= 0) & (own <= task)
            if dense:
                visible = visible | (own < 0)
            x = F.relu(F.linear(x, layer.weight * visible))
        return self.heads[task](x)

    @torch.no_grad()
    def claim(self, task):
        """Gives the largest free weights to `task`; the others restart small."""
        for i, layer in enumerate(self.layers):
            own, free = self.owner(i), self.owner(i) < 0
            threshold = torch.quantile(layer.weight[free].abs(), 1 - KEEP)
            kept = free & (layer.weight.abs() >= threshold)
            own[kept] = task
            rest = own < 0
            layer.weight[rest] = 0.05 * torch.randn(int(rest.sum()))


def protect(model, task):
    """Only weights that belong to no earlier task may learn."""
    for i, layer in enumerate(model.layers):
        own = model.owner(i)
        layer.weight.grad[(own >= 0) & (own < task)] = 0.0


def train(model, optimizer, data, task, epochs, dense):
    x, y = data
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(model(x[idx], task, dense), y[idx])
            optimizer.zero_grad()
            loss.backward()
            protect(model, task)
            optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, data, task):
    model.eval()
    x, y = data
    return (model(x, task).argmax(1) == y).float().mean().item()


tasks = [make_task(100 + t) for t in range(TASKS)]
model = PackedMLP()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, weight_decay=1e-3)
table = []
for task, (train_data, _) in enumerate(tasks):
    train(model, optimizer, train_data, task, epochs=30, dense=True)
    model.claim(task)
    final = train(model, optimizer, train_data, task, epochs=10, dense=False)
    row = [accuracy(model, tasks[t][1], t) for t in range(task + 1)]
    table.append(row)
    print(f"after task {task}: loss {final:.4f}  accuracy " + "  ".join(f"{a:.3f}" for a in row))
forgetting = sum(table[t][t] - table[-1][t] for t in range(TASKS - 1)) / (TASKS - 1)
print(f"mean forgetting {forgetting:.3f}")
