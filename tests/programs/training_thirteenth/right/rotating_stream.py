"""A-GEM on a stream of rotated point-cloud classification tasks: one shared head, small episodic memory."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
POINTS, CLASSES, TASKS, BATCH, MEMORY = 24, 4, 4, 20, 60


def clouds(n, angle, gen):
    """Noisy samples of four planar curves, rotated by the task's angle."""
    label = torch.randint(0, CLASSES, (n,), generator=gen)
    t = 2 * torch.pi * torch.rand(n, POINTS, generator=gen)
    shapes = torch.stack([
        torch.stack([torch.cos(t), 0.3 * torch.sin(t)], -1),
        torch.stack([torch.cos(t), torch.sin(2 * t)], -1),
        torch.stack([torch.cos(t) ** 3, torch.sin(t) ** 3 + 0.4], -1),
        torch.stack([t / torch.pi - 1, 0.5 * (t / torch.pi - 1)], -1)])
    xy = shapes[label, torch.arange(n)] + 0.08 * torch.randn(n, POINTS, 2, generator=gen)
    c, s = torch.cos(torch.tensor(angle)), torch.sin(torch.tensor(angle))
    return xy @ torch.stack([torch.stack([c, s]), torch.stack([-s, c])]), label


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 64))
        self.head = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, CLASSES))

    def forward(self, xy):
        return self.head(self.local(xy).max(dim=1).values)


class EpisodicMemory:
    def __init__(self):
        self.x, self.y = [], []

    def add(self, x, y, per_task=MEMORY):
        pick = torch.randperm(len(x))[:per_task]
        self.x.append(x[pick])
        self.y.append(y[pick])

    def sample(self, n):
        x, y = torch.cat(self.x), torch.cat(self.y)
        pick = torch.randint(0, len(x), (n,))
        return x[pick], y[pick]


def agem_step(model, optimizer, x, y, memory):
    params = list(model.parameters())
    loss = F.cross_entropy(model(x), y)
    grads = torch.autograd.grad(loss, params)
    violated = False
    if memory is not None and memory.x:
        mx, my = memory.sample(64)
        ref = torch.autograd.grad(F.cross_entropy(model(mx), my), params)
        dot = sum((g * r).sum() for g, r in zip(grads, ref))
        violated = bool(dot < 0)
        if violated:
            scale = dot / sum((r * r).sum() for r in ref)
            grads = [g - scale * r for g, r in zip(grads, ref)]
    for p, g in zip(params, grads):
        p.grad = g
    optimizer.step()
    return loss.item(), violated


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def run_stream(use_memory):
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(2)
    model = PointNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    memory = EpisodicMemory() if use_memory else None
    tests, projected, steps = [], 0, 0
    for task in range(TASKS):
        angle = 0.7 * task
        x, y = clouds(600, angle, gen)
        tests.append(clouds(300, angle, gen))
        for _ in range(8):
            for idx in torch.randperm(len(x)).split(BATCH):
                loss, violated = agem_step(model, optimizer, x[idx], y[idx], memory)
                projected += violated
                steps += 1
        if memory is not None:
            memory.add(x, y)
        row = "  ".join(f"{accuracy(model, *t):.3f}" for t in tests)
        print(f"  task {task}  loss {loss:.3f}  accuracies {row}")
    final = sum(accuracy(model, *t) for t in tests) / TASKS
    print(f"  mean accuracy {final:.3f}  projected {projected}/{steps}")
    return final


print("plain fine-tuning")
plain = run_stream(use_memory=False)
print("A-GEM")
agem = run_stream(use_memory=True)
print(f"gain {agem - plain:+.3f}")
