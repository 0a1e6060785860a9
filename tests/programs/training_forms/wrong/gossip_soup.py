from collections import OrderedDict
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(8)
N_WORKERS, CLASSES = 3, 4
centers = torch.randn(CLASSES, 10) * 1.5


def sample(n):
    y = torch.randint(CLASSES, (n,))
    return centers[y] + torch.randn(n, 10), y


class Worker:
    def __init__(self, lr):
        self.net = nn.Sequential(nn.Linear(10, 20), nn.LayerNorm(20), nn.ReLU(), nn.Linear(20, CLASSES))
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=lr)

    def work(self, steps):
        for _ in range(steps):
            x, y = sample(32)
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


def soup(workers):
    head, *tail = [w.net.state_dict() for w in workers]
    total = OrderedDict(head)
    for other in tail:
        for name, tensor in other.items():
            total[name].add_(tensor)
    return {name: t / len(workers) for name, t in total.items()}


workers = [Worker(lr) for lr in (1e-3, 2e-3, 4e-3)]
start = {k: v.clone() for k, v in workers[0].net.state_dict().items()}
for w in workers[1:]:
    w.net.load_state_dict(start)
served = nn.Sequential(nn.Linear(10, 20), nn.LayerNorm(20), nn.ReLU(), nn.Linear(20, CLASSES))
x_test, y_test = sample(500)
for rnd in range(5):
    losses = [w.work(12) for w in workers]
    served.load_state_dict(soup(workers))
    with torch.no_grad():
        acc = (served(x_test).argmax(-1) == y_test).float().mean()
    print(f"round {rnd} " + " ".join(f"{v:.3f}" for v in losses) + f" served {acc:.3f}")
