"""Several classification tasks packed into one trunk: train, prune, retrain, then reuse the freed weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class OwnedLinear(nn.Linear):
    """Linear layer in which every weight belongs to one task (0: not owned yet)."""

    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out)
        self.register_buffer("owner", torch.zeros(n_out, n_in, dtype=torch.long))

    def forward(self, x, task):
        visible = (self.owner > 0) & (self.owner <= task)
        return F.linear(x, self.weight * visible, self.bias)

    def claim(self, task):
        self.owner[self.owner == 0] = task

    @torch.no_grad()
    def prune(self, task, share):
        mine = self.owner == task
        cut = self.weight[mine].abs().quantile(share)
        drop = mine & (self.weight.abs() < cut)
        self.weight[drop] = 0.0
        self.owner[drop] = 0

    @torch.no_grad()
    def restart_free(self):
        free = self.owner == 0
        self.weight[free] = 0.05 * torch.randn(int(free.sum()))

    def keep_others(self, task):
        self.weight.grad[self.owner != task] = 0.0


class PackedNet(nn.Module):
    def __init__(self, n_in, width, classes, tasks):
        super().__init__()
        self.layers = nn.ModuleList([OwnedLinear(n_in, width), OwnedLinear(width, width)])
        self.heads = nn.ModuleList([nn.Linear(width, classes) for _ in range(tasks)])

    def forward(self, x, task):
        for layer in self.layers:
            x = F.relu(layer(x, task))
        return self.heads[task - 1](x)


def make_task(generator, n=600, n_in=20, classes=4):
    centers = 1.4 * torch.randn(3 * classes, n_in, generator=generator)
    labels = torch.randint(0, 3 * classes, (n,), generator=generator)
    x = centers[labels] + torch.randn(n, n_in, generator=generator)
    y = labels % classes
    return (x[:400], y[:400]), (x[400:], y[400:])


def fit(model, task, data, steps, lr=3e-3, weight_decay=1e-4):
    x, y = data
    params = [p for p in model.layers.parameters() if p.requires_grad]
    params += list(model.heads[task - 1].parameters())
    optimizer = torch.optim.Adam(params, lr=lr, weight_decay=weight_decay)
    model.train()
    for step in range(steps):
        index = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(model(x[index], task), y[index])
        optimizer.zero_grad()
        loss.backward()
        for layer in model.layers:
            layer.keep_others(task)
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, task, data):
    x, y = data
    model.eval()
    return (model(x, task).argmax(1) == y).float().mean().item()


def learn_task(model, task, data, steps=120, share=0.5):
    for layer in model.layers:
        layer.claim(task)
    fit(model, task, data, steps)
    for layer in model.layers:
        layer.prune(task, share)
    loss = fit(model, task, data, steps // 2)
    for layer in model.layers:
        layer.restart_free()
        layer.bias.requires_grad_(False)
    return loss


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(3)
    tasks = [make_task(generator) for _ in range(3)]
    model = PackedNet(20, 48, 4, len(tasks))
    history = []
    for task, (train, _) in enumerate(tasks, start=1):
        loss = learn_task(model, task, train)
        scores = [accuracy(model, t, tasks[t - 1][1]) for t in range(1, task + 1)]
        history.append(scores)
        print(f"after task {task}: loss {loss:.3f}  accuracy " + "  ".join(f"{s:.3f}" for s in scores))
    return model, history


if __name__ == "__main__":
    main()
