"""Dark experience replay (DER++, Buzzega et al. 2020) in small: a stream of three tasks with a reservoir of old samples."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED, TASKS, CLASSES, DIM = 4, 3, 6, 24
EPOCHS, BATCH, BUFFER, ALPHA, BETA, LR = 8, 64, 240, 0.3, 0.7, 0.05
torch.manual_seed(SEED)
np.random.seed(SEED)


def make_task(centers, rotation, n):
    y = torch.randint(CLASSES, (n,))
    x = centers[y] + 0.9 * torch.randn(n, DIM)
    return torch.tanh(x @ rotation), y


class Reservoir:
    """Every sample seen so far has the same chance to be in the buffer; keeps the logits of its time along with it."""

    def __init__(self, size):
        self.size, self.seen = size, 0
        self.x = torch.zeros(size, DIM)
        self.y = torch.zeros(size, dtype=torch.long)
        self.logits = torch.zeros(size, CLASSES)

    def add(self, x, y, logits):
        for i in range(len(x)):
            slot = self.seen if self.seen < self.size else np.random.randint(0, self.seen + 1)
            self.seen += 1
            if slot < self.size:
                self.x[slot], self.y[slot], self.logits[slot] = x[i], y[i], logits[i]

    def draw(self, n):
        idx = torch.randint(min(self.seen, self.size), (n,))
        return self.x[idx], self.y[idx], self.logits[idx]


def make_net():
    return nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, CLASSES))


@torch.no_grad()
def accuracy(net, data):
    net.eval()
    acc = (net(data[0]).argmax(1) == data[1]).float().mean().item()
    net.train()
    return acc


def main():
    tasks = []
    for _ in range(TASKS):
        centers = 0.55 * torch.randn(CLASSES, DIM)
        rotation = torch.linalg.qr(torch.randn(DIM, DIM)).Q
        tasks.append((make_task(centers, rotation, 1500), make_task(centers, rotation, 600)))
    net = make_net()
    buffer = Reservoir(BUFFER)
    steps_per_task = EPOCHS * (1500 // BATCH)
    opt = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9)
    # linear decay over the steps of a task
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: max(0.02, 1.0 - step / steps_per_task))
    table = []
    for number, ((x, y), _) in enumerate(tasks):
        for epoch in range(EPOCHS):
            order = torch.randperm(len(x))
            for batch in order.split(BATCH)[: 1500 // BATCH]:
                logits = net(x[batch])
                loss = F.cross_entropy(logits, y[batch])
                if buffer.seen and number > 0:
                    old_x, _, old_logits = buffer.draw(BATCH)
                    loss = loss + ALPHA * F.mse_loss(net(old_x), old_logits)
                    old_x, old_y, _ = buffer.draw(BATCH)
                    loss = loss + BETA * F.cross_entropy(net(old_x), old_y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                sched.step()
                if epoch == EPOCHS - 1:
                    buffer.add(x[batch], y[batch], logits.detach())
        row = [accuracy(net, test) for _, test in tasks[: number + 1]]
        table.append(row)
        print(f"after task {number}: " + "  ".join(f"{a:.3f}" for a in row) + f"   (last loss {loss.item():.3f})")
    mean = sum(table[-1]) / TASKS
    forgetting = sum(table[i][i] - table[-1][i] for i in range(TASKS - 1)) / (TASKS - 1)
    print(f"mean accuracy {mean:.3f}   forgetting {forgetting:.3f}")
    return table, mean, opt


if __name__ == "__main__":
    table, mean, opt = main()
