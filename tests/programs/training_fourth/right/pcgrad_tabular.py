"""Two partly conflicting tasks with a shared trunk, trained with projected gradients (PCGrad): where the tasks'
gradients on the trunk point against each other, each loses its component along the other."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def make_data(n):
    x = torch.randn(n, 8)
    first = torch.tanh(x[:, 0] + x[:, 1]) + 0.3 * x[:, 2]
    second = torch.tanh(x[:, 0] - x[:, 1]) - 0.3 * x[:, 2]
    return x, torch.stack([first, second], 1) + 0.05 * torch.randn(n, 2)


trunk = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
heads = nn.ModuleList([nn.Linear(24, 1), nn.Linear(24, 1)])
shared = list(trunk.parameters())
optimizer = torch.optim.Adam([*shared, *heads.parameters()], lr=4e-3)


def flatten(tensors):
    return torch.cat([t.flatten() for t in tensors])


def project(vectors):
    """Every task's gradient, less its conflicting parts; the other tasks' original gradients are used throughout."""
    result = []
    for i, own in enumerate(vectors):
        own = own.clone()
        for j in torch.randperm(len(vectors)).tolist():
            if j != i:
                overlap = own @ vectors[j]
                if overlap < 0:
                    own -= overlap / vectors[j].pow(2).sum().clamp(min=1e-12) * vectors[j]
        result.append(own)
    return sum(result)


def write_back(vector, params):
    start = 0
    for p in params:
        p.grad = vector[start : start + p.numel()].view_as(p).clone()
        start += p.numel()


x, y = make_data(1200)
test_x, test_y = make_data(800)
conflicts = steps = 0
for epoch in range(15):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        features = trunk(x[index])
        vectors = []
        for task, head in enumerate(heads):
            loss = F.mse_loss(head(features).squeeze(1), y[index, task])
            own = list(head.parameters())
            grads = torch.autograd.grad(loss, shared + own, retain_graph=task == 0)
            vectors.append(flatten(grads[: len(shared)]))
            for p, g in zip(own, grads[len(shared) :]):
                p.grad = g
        conflicts += int(vectors[0] @ vectors[1] < 0)
        steps += 1
        write_back(project(vectors), shared)
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}  last loss {loss.item():.4f}  conflicts so far {conflicts / steps:.2f}")

with torch.no_grad():
    h = trunk(test_x)
    errors = [F.mse_loss(head(h).squeeze(1), test_y[:, i]).item() for i, head in enumerate(heads)]
print("test errors", [round(e, 4) for e in errors], "variances", [round(v, 3) for v in test_y.var(0).tolist()])
