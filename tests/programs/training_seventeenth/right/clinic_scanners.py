"""FedBN in small: clinics with differently calibrated scanners share a net, each keeps its own normalisation."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
N_CLASSES = 4
N_CLINICS = 5
ROUNDS = 8
LOCAL_STEPS = 12

organs = F.avg_pool2d(torch.randn(N_CLASSES, 1, 10, 10), 3, stride=1, padding=1) * 3


class Clinic:
    def __init__(self, gain, level):
        self.gain, self.level = gain, level
        self.x, self.y = self.scan(240)
        self.test_x, self.test_y = self.scan(300)
        self.private = {}

    def scan(self, n):
        y = torch.randint(0, N_CLASSES, (n,))
        x = organs[y] + 0.9 * torch.randn(n, 1, 10, 10)
        return self.gain * x + self.level, y


class ScanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm0 = nn.BatchNorm2d(1)
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 16, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 4, N_CLASSES)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(self.norm0(x))))
        x = F.relu(self.norm2(self.conv2(F.max_pool2d(x, 2))))
        return self.fc(F.adaptive_avg_pool2d(x, 2).flatten(1))


def is_private(key):
    return key.startswith("norm")


def load_for(net, shared, clinic):
    """Server weights for the shared layers; the norm layers (affine and statistics) from the clinic."""
    net.load_state_dict({**shared, **clinic.private})


def local_round(net, shared, clinic):
    load_for(net, shared, clinic)
    net.train()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(LOCAL_STEPS):
        idx = torch.randint(0, len(clinic.x), (40,))
        loss = F.cross_entropy(net(clinic.x[idx]), clinic.y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    state = copy.deepcopy(net.state_dict())
    clinic.private = {k: v for k, v in state.items() if is_private(k)}
    return {k: v for k, v in state.items() if not is_private(k)}, loss.item()


@torch.no_grad()
def evaluate(net, shared, clinic):
    load_for(net, shared, clinic)
    net.eval()
    return (net(clinic.test_x).argmax(1) == clinic.test_y).float().mean().item()


gains = [0.3, 0.8, 1.0, 2.0, 4.0]
levels = [2.0, -1.0, 0.0, 3.0, -6.0]
clinics = [Clinic(g, l) for g, l in zip(gains, levels)]

net = ScanNet()
start = copy.deepcopy(net.state_dict())
for clinic in clinics:
    clinic.private = {k: v.clone() for k, v in start.items() if is_private(k)}
shared = {k: v for k, v in start.items() if not is_private(k)}

for rnd in range(ROUNDS):
    uploads, losses = zip(*[local_round(net, shared, c) for c in clinics])
    shared = {k: torch.stack([u[k] for u in uploads]).mean(0) for k in uploads[0]}
    accs = [evaluate(net, shared, c) for c in clinics]
    print(f"round {rnd}  loss {sum(losses) / len(losses):.3f}  acc " + " ".join(f"{a:.3f}" for a in accs))

print("input statistics:", [round(c.private["norm0.running_mean"].item(), 2) for c in clinics])
print(f"mean accuracy {sum(accs) / len(accs):.3f}")
