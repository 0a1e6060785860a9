"""Continual learning on a row of organ-patch tasks: a shared net with elastic weight consolidation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
DIM = 49
N_TASKS = 4
N_TRAIN = 320
N_FISHER = 120
STRENGTH = 40.0


def make_task():
    """Benign or malignant 7x7 patches; each organ has its own lesion pattern and background."""
    lesion = torch.randn(DIM)
    lesion = lesion / lesion.norm() * 2.2
    background = 0.8 * torch.randn(DIM)

    def sample(n):
        y = torch.randint(0, 2, (n,))
        x = background + torch.randn(n, DIM) + (2.0 * y.view(-1, 1) - 1.0) * lesion
        return x, y

    return sample(N_TRAIN), sample(500)


class PatchNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.fc1 = nn.Linear(DIM, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.out(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Consolidation:
    """Keeps one (importance, anchor) pair per finished task."""

    def __init__(self, net):
        self.net = net
        self.memory = []

    def register(self, x):
        self.net.eval()
        importance = {n: torch.zeros_like(p) for n, p in self.net.named_parameters()}
        self.net.zero_grad()
        for i in torch.randperm(len(x))[:N_FISHER]:
            logits = self.net(x[i:i + 1])
            label = torch.distributions.Categorical(logits=logits.detach()).sample()
            F.cross_entropy(logits, label).backward()
            for n, p in self.net.named_parameters():
                importance[n] += p.grad.pow(2) / N_FISHER
        anchor = {n: p.detach().clone() for n, p in self.net.named_parameters()}
        self.memory.append((importance, anchor))
        self.net.zero_grad()
        self.net.train()

    def penalty(self):
        total = torch.zeros(())
        for importance, anchor in self.memory:
            for n, p in self.net.named_parameters():
                total = total + (importance[n] * (p - anchor[n]).pow(2)).sum()
        return 0.5 * total


def train_task(net, ewc, x, y, epochs=12, batch=32):
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.8)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(net(x[idx]), y[idx]) + STRENGTH * ewc.penalty()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(net, x, y):
    return (net(x).argmax(1) == y).float().mean().item()


tasks = [make_task() for _ in range(N_TASKS)]
net = PatchNet()
ewc = Consolidation(net)
table = []
for t, ((x, y), _) in enumerate(tasks):
    last = train_task(net, ewc, x, y)
    ewc.register(x)
    row = [accuracy(net, *test) for _, test in tasks[:t + 1]]
    table.append(row)
    size = sum(v.sum().item() for v in ewc.memory[-1][0].values())
    print(f"task {t}  loss {last:.3f}  importance {size:9.3f}  acc " + " ".join(f"{a:.3f}" for a in row))

mean_acc = sum(table[-1]) / N_TASKS
forgetting = sum(table[t][t] - table[-1][t] for t in range(N_TASKS - 1)) / (N_TASKS - 1)
print(f"mean accuracy {mean_acc:.3f}  forgetting {forgetting:.3f}")
