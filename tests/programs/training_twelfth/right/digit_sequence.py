"""EWC (Kirkpatrick et al., 2017) on a sequence of permuted pattern tasks, against plain fine-tuning."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)

SIDE, CLASSES, TASKS = 8, 5, 3
EPOCHS, BATCH = 6, 32
STRENGTH = 300.0
FISHER_SAMPLES = 150

PROTOTYPES = (torch.rand(CLASSES, SIDE * SIDE) > 0.6).float()


def make_task(permutation, n):
    y = torch.randint(0, CLASSES, (n,))
    x = PROTOTYPES[y] + 0.7 * torch.randn(n, SIDE * SIDE)
    return x[:, permutation], y


def build():
    return nn.Sequential(nn.Linear(SIDE * SIDE, 100), nn.ReLU(), nn.Dropout(0.1),
                         nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, CLASSES))


class Anchor:
    """Weights after one task and the diagonal Fisher information there, one example at a time."""

    def __init__(self, net, x):
        self.center = {n: p.detach().clone() for n, p in net.named_parameters()}
        self.fisher = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
        net.eval()
        for row in x[torch.randperm(len(x))[:FISHER_SAMPLES]]:
            log_prob = F.log_softmax(net(row[None]), dim=-1)
            label = torch.multinomial(log_prob.detach().exp(), 1).squeeze(1)
            net.zero_grad()
            F.nll_loss(log_prob, label).backward()
            for n, p in net.named_parameters():
                self.fisher[n] += p.grad.detach() ** 2 / FISHER_SAMPLES
        net.zero_grad()
        net.train()

    def penalty(self, net):
        return sum((self.fisher[n] * (p - self.center[n]) ** 2).sum() for n, p in net.named_parameters())


def accuracy(net, data):
    was_training = net.training
    net.eval()
    with torch.no_grad():
        value = (net(data[0]).argmax(1) == data[1]).float().mean().item()
    net.train(was_training)
    return value


def train_task(net, data, anchors):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    net.train()
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(data[0])).split(BATCH):
            loss = F.cross_entropy(net(data[0][idx]), data[1][idx])
            opt.zero_grad()
            loss.backward()
            # the anchors' gradients come on top, one penalty at a time
            for anchor in anchors:
                (0.5 * STRENGTH * anchor.penalty(net)).backward()
            opt.step()
    return loss.item()


permutations = [torch.randperm(SIDE * SIDE) for _ in range(TASKS)]
train_sets = [make_task(p, 800) for p in permutations]
test_sets = [make_task(p, 400) for p in permutations]

start = build()
results = {}
for method in ("finetune", "ewc"):
    net, anchors = copy.deepcopy(start), []
    for k in range(TASKS):
        loss = train_task(net, train_sets[k], anchors)
        if method == "ewc":
            anchors.append(Anchor(net, train_sets[k][0]))
        row = [accuracy(net, t) for t in test_sets[:k + 1]]
        print(f"{method:9s} after task {k + 1}  loss {loss:.3f}  acc " + "  ".join(f"{a:.3f}" for a in row))
    results[method] = sum(row) / TASKS
print("mean accuracy", {m: round(v, 3) for m, v in results.items()})
