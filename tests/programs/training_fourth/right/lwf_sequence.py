"""Learning without forgetting: before each new task the network is copied, and the copy's answers on the new inputs
are kept as soft targets for the old heads. Every task adds a head."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

DIM, CLASSES, TASKS, TEMPERATURE = 10, 3, 3, 2.0


def make_task(seed, n=900):
    g = torch.Generator().manual_seed(seed)
    centres = torch.randn(CLASSES, DIM, generator=g)

    def draw():
        y = torch.randint(CLASSES, (n,), generator=g)
        return centres[y] + 0.8 * torch.randn(n, DIM, generator=g), y

    return draw(), draw()


class MultiHead(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList()
        self.width = width

    def add_head(self):
        self.heads.append(nn.Linear(self.width, CLASSES))

    def forward(self, x):
        h = self.trunk(x)
        return [head(h) for head in self.heads]


def soft_loss(logits, targets):
    return F.kl_div(
        F.log_softmax(logits / TEMPERATURE, 1), F.softmax(targets / TEMPERATURE, 1), reduction="batchmean"
    ) * TEMPERATURE**2


def learn_task(model, data, keep):
    old = copy.deepcopy(model).eval().requires_grad_(False)
    model.add_head()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    x, y = data
    for _ in range(10):
        for index in torch.randperm(len(x)).split(60):
            outputs = model(x[index])
            loss = F.cross_entropy(outputs[-1], y[index])
            if keep:
                for now, then in zip(outputs, old(x[index])):
                    loss = loss + keep * soft_loss(now, then)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracies(model, tasks):
    return [model(test[0])[i].argmax(1).eq(test[1]).float().mean().item() for i, (_, test) in enumerate(tasks)]


def sequence(keep):
    torch.manual_seed(0)
    model, tasks = MultiHead(), []
    for seed in range(TASKS):
        tasks.append(make_task(seed))
        learn_task(model, tasks[-1][0], keep)
        print(f"  after task {seed + 1}:", [round(a, 3) for a in accuracies(model, tasks)])
    return accuracies(model, tasks)


if __name__ == "__main__":
    print("fine-tuning only")
    plain = sequence(keep=0.0)
    print("with the old network's answers")
    kept = sequence(keep=2.0)
    print(f"mean accuracy on the first tasks: {sum(plain[:-1]) / 2:.3f} against {sum(kept[:-1]) / 2:.3f}")
