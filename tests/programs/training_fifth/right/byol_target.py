"""BYOL-style pretraining on gene-expression-like vectors: frozen target network moved by lerp_."""
import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(31)

GENES, TYPES = 50, 5
profiles = 1.2 * torch.randn(TYPES, GENES)


def cells(n):
    kind = torch.randint(TYPES, (n,))
    return profiles[kind] + torch.randn(n, GENES), kind


def view(x):
    return x * (torch.rand_like(x) > 0.2) + 0.3 * torch.randn_like(x)


def block(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


online = block(GENES, 64, 24)
predictor = block(24, 32, 24)
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=2e-3)


@torch.no_grad()
def move_target(tau):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, 1 - tau)
    for t, o in zip(target.buffers(), online.buffers()):
        t.copy_(o)


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=1).mean()


def knn_accuracy(k=7):
    online.eval()
    (x, y), (xt, yt) = cells(400), cells(300)
    with torch.no_grad():
        z, zt = (F.normalize(online(v), dim=1) for v in (x, xt))
    online.train()
    votes = F.one_hot(y[(zt @ z.t()).topk(k, dim=1).indices], TYPES).sum(1)
    return (votes.argmax(1) == yt).float().mean().item()


STEPS = 250
print(f"kNN before {knn_accuracy():.3f}")
for step in range(STEPS):
    x, _ = cells(96)
    a, b = view(x), view(x)
    loss = regression(predictor(online(a)), target(b)) + regression(predictor(online(b)), target(a))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    move_target(tau=1 - 0.04 * (1 - step / STEPS))
    if (step + 1) % 50 == 0:
        with torch.no_grad():
            std = F.normalize(online(x), dim=1).std(0).mean()
        print(f"step {step + 1}  loss {loss.item():.3f}  std {std:.3f}")
print(f"kNN after {knn_accuracy():.3f}")
