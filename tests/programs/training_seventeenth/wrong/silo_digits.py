"""FedProx on eight hospitals ("silos") that each see only a few of ten glyph classes."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
N_CLASSES = 10
N_SILOS = 8
ROUNDS = 8
LOCAL_STEPS = 20
MU = 0.4

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

TEMPLATES = torch.from_numpy(rng.normal(size=(N_CLASSES, 1, 12, 12))).float()
TEMPLATES = F.avg_pool2d(TEMPLATES, 3, stride=1, padding=1) * 3


def draw(labels):
    """Noisy, shifted and scaled versions of the class templates."""
    x = TEMPLATES[labels].clone()
    for i in range(0, len(x), 4):
        dy, dx = rng.integers(-1, 2, size=2)
        x[i:i + 4] = torch.roll(x[i:i + 4], (int(dy), int(dx)), dims=(2, 3))
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1))
    return x + 0.8 * torch.randn_like(x)


def make_silo():
    share = rng.dirichlet(np.full(N_CLASSES, 0.2))
    labels = torch.from_numpy(rng.choice(N_CLASSES, size=160, p=share))
    return draw(labels), labels


class GlyphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 3 * 3, N_CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def local_update(net, global_state, x, y):
    """Local SGD that is pulled towards the server's weights of this round."""
    net.load_state_dict(global_state)
    net.train()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    server = {name: p.detach() for name, p in net.named_parameters()}
    for _ in range(LOCAL_STEPS):
        idx = torch.from_numpy(rng.integers(0, len(x), size=32))
        loss = F.cross_entropy(net(x[idx]), y[idx])
        prox = sum((p - server[name]).pow(2).sum() for name, p in net.named_parameters())
        opt.zero_grad()
        (loss + 0.5 * MU * prox).backward()
        opt.step()
    return copy.deepcopy(net.state_dict()), loss.item()


def average(states, sizes):
    total = float(sum(sizes))
    out = copy.deepcopy(states[0])
    for key in out:
        out[key] = sum(s[key] * (n / total) for s, n in zip(states, sizes))
    return out


def spread(states, center):
    d = [sum((s[k] - center[k]).pow(2).sum() for k in center).sqrt() for s in states]
    return torch.stack(d).mean().item()


@torch.no_grad()
def evaluate(net, state, x, y):
    net.load_state_dict(state)
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


silos = [make_silo() for _ in range(N_SILOS)]
test_y = torch.arange(N_CLASSES).repeat(60)
test_x = draw(test_y)

worker = GlyphNet()
global_state = copy.deepcopy(worker.state_dict())
history = []
for rnd in range(ROUNDS):
    results = [local_update(worker, global_state, x, y) for x, y in silos]
    states = [s for s, _ in results]
    drift = spread(states, global_state)
    global_state = average(states, [len(y) for _, y in silos])
    acc = evaluate(worker, global_state, test_x, test_y)
    history.append((drift, acc))
    mean_loss = sum(l for _, l in results) / len(results)
    print(f"round {rnd:2d}  local loss {mean_loss:.3f}  drift {drift:.3f}  test acc {acc:.3f}")
