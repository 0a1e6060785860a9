"""PackNet (Mallya & Lazebnik 2018) in small: three tasks in one body, each owns a share of the weights."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
DIM, HIDDEN, CLASSES, TASKS = 30, 80, 5, 3
SHARE = 0.35  # of the still free weights that a task keeps for itself


def make_task():
    teacher = nn.Sequential(nn.Linear(DIM, 16), nn.Tanh(), nn.Linear(16, CLASSES)).requires_grad_(False)
    for layer in (teacher[0], teacher[2]):
        layer.weight.mul_(2.0)

    def draw(n):
        x = torch.randn(n, DIM)
        return x, teacher(x).argmax(1)

    return draw(6000), draw(1000)


class PackedLinear(nn.Linear):
    """owner: 0 = free, k = belongs to task k. Forward for task k uses the weights of tasks 1..k, training the free too."""

    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out, bias=False)
        self.register_buffer("owner", torch.zeros(n_out, n_in, dtype=torch.int8))
        self.register_buffer("visible", torch.ones(n_out, n_in))
        self.weight.register_hook(lambda g: g * self.trainable)
        self.open_free()

    def open_free(self):
        """All weights visible, the free ones move."""
        self.trainable = (self.owner == 0).float()
        self.visible.fill_(1.0)

    def claim(self, task):
        """The task keeps the largest free weights; the other free ones are set to zero for now."""
        free = self.owner == 0
        k = int(SHARE * free.sum())
        cut = self.weight.detach().abs()[free].topk(k).values[-1]
        mine = free & (self.weight.detach().abs() >= cut)
        self.owner[mine] = task
        self.trainable = mine.float()
        with torch.no_grad():
            self.weight[free & ~mine] = 0.0

    def show(self, task):
        self.visible.copy_(((self.owner > 0) & (self.owner <= task)).float())

    @torch.no_grad()
    def reseed(self):
        free = self.owner == 0
        self.weight[free] = 0.05 * torch.randn(int(free.sum()))

    def forward(self, x):
        return F.linear(x, self.weight * self.visible)


def fit(body, head, data, steps, lr):
    # no momentum from earlier tasks, and no weight decay: the weights of other tasks must not move
    opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=lr, momentum=0.9)
    for _ in range(steps):
        idx = torch.randint(len(data[0]), (96,))
        loss = F.cross_entropy(head(body(data[0][idx])), data[1][idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(body, head, packed, task, data):
    for layer in packed:
        layer.show(task)
    return (head(body(data[0])).argmax(1) == data[1]).float().mean().item()


def main():
    packed = [PackedLinear(DIM, HIDDEN), PackedLinear(HIDDEN, HIDDEN)]
    body = nn.Sequential(packed[0], nn.ReLU(), packed[1], nn.ReLU())
    heads, tasks, table = [], [make_task() for _ in range(TASKS)], []
    for task, (train, _) in enumerate(tasks, start=1):
        heads.append(nn.Linear(HIDDEN, CLASSES))
        for layer in packed:
            if task > 1:
                layer.reseed()
            layer.open_free()
        first = fit(body, heads[-1], train, 500, 0.1)
        for layer in packed:
            layer.claim(task)
        second = fit(body, heads[-1], train, 250, 0.05)
        table.append([accuracy(body, heads[i], packed, i + 1, tasks[i][1]) for i in range(task)])
        print(f"task {task}: loss {first:.3f}, after pruning {second:.3f}; accuracy " +
              " ".join(f"{a:.3f}" for a in table[-1]))
    kept = all(table[-1][i] == table[i][i] for i in range(TASKS))
    print("earlier tasks unchanged:", kept)
    return table


if __name__ == "__main__":
    table = main()
