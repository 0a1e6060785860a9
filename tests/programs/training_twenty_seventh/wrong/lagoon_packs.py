"""PackNet-style continual learning: each task owns a share of the weights of one network."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_tasks(n_tasks, dim, classes, gen):
    tasks = []
    for _ in range(n_tasks):
        w1 = torch.randn(dim, 16, generator=gen)
        w2 = torch.randn(16, classes, generator=gen)

        def draw(n, w1=w1, w2=w2):
            x = torch.randn(n, dim, generator=gen)
            return x, (torch.tanh(x @ w1 / dim ** 0.5) @ w2).argmax(1)

        tasks.append((draw(1000), draw(500)))
    return tasks


class PackedNet(nn.Module):
    def __init__(self, dim, hidden, classes, n_tasks):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)])
        self.heads = nn.ModuleList([nn.Linear(hidden, classes) for _ in range(n_tasks)])
        # 0 = free, t + 1 = owned by task t
        self.owner = [torch.zeros_like(l.weight, dtype=torch.long) for l in self.body]

    def forward(self, x, task):
        for layer, owner in zip(self.body, self.owner):
            x = F.relu(F.linear(x, layer.weight * (owner <= task + 1)))
        return self.heads[task](x)


class PackTrainer:
    def __init__(self, net, keep=0.5, lr=3e-3, weight_decay=1e-4, batch_size=64):
        self.net, self.keep, self.lr = net, keep, lr
        self.weight_decay, self.batch_size = weight_decay, batch_size

    def mask_gradients(self):
        """Weights that belong to an earlier task get no gradient."""
        for layer, owner in zip(self.net.body, self.net.owner):
            layer.weight.grad[owner != self.free_code] = 0.0

    def run_epochs(self, task, data, epochs):
        x, y = data
        params = list(self.net.body.parameters()) + list(self.net.heads[task].parameters())
        opt = torch.optim.Adam(params, lr=self.lr, weight_decay=self.weight_decay)
        for _ in range(epochs):
            total = 0.0
            for idx in torch.randperm(len(x)).split(self.batch_size):
                loss = F.cross_entropy(self.net(x[idx], task), y[idx])
                opt.zero_grad()
                loss.backward()
                self.mask_gradients()
                opt.step()
                total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def prune(self, task):
        """Keep the largest free weights for this task, release the others."""
        for layer, owner in zip(self.net.body, self.net.owner):
            free = owner == 0
            cut = layer.weight[free].abs().quantile(1 - self.keep)
            owner[free & (layer.weight.abs() >= cut)] = task + 1
            layer.weight[owner == 0] = 0.0

    @torch.no_grad()
    def release(self):
        """Give the free weights a small restart so that the next task can use them."""
        for layer, owner in zip(self.net.body, self.net.owner):
            free = owner == 0
            layer.weight[free] = 0.1 * torch.randn(int(free.sum()))

    def learn(self, task, data):
        self.free_code = 0
        loss = self.run_epochs(task, data, epochs=15)
        self.prune(task)
        self.free_code = task + 1      # short retraining of the kept weights
        self.run_epochs(task, data, epochs=5)
        return loss


@torch.no_grad()
def accuracy(net, task, data):
    return (net(data[0], task).argmax(1) == data[1]).float().mean().item()


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    tasks = make_tasks(3, dim=16, classes=4, gen=gen)
    net = PackedNet(16, 64, 4, len(tasks))
    trainer = PackTrainer(net)
    table = []
    for t, (train, _) in enumerate(tasks):
        if t > 0:
            trainer.release()
        loss = trainer.learn(t, train)
        table.append([accuracy(net, k, tasks[k][1]) for k in range(t + 1)])
        print(f"task {t}: loss {loss:.3f}  acc {table[-1][t]:.3f}  mean over tasks {sum(table[-1]) / (t + 1):.3f}")
    return net, trainer, tasks, table


if __name__ == "__main__":
    net, trainer, tasks, table = main()
