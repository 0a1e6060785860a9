import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(21)


class Bank:
    def __init__(self, size, width):
        self.size = size
        self.rows = F.normalize(torch.randn(size, width), dim=1)

    @torch.no_grad()
    def push(self, keys):
        joined = torch.vstack((keys, self.rows))
        self.rows = joined.narrow(0, 0, self.size).contiguous()


def encoder():
    return nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 16))


def views(n):
    topic = torch.randint(8, (n,))
    base = protos[topic] + 0.5 * torch.randn(n, 20)
    return base + 0.2 * torch.randn(n, 20), base + 0.2 * torch.randn(n, 20)


protos = torch.randn(8, 20) * 1.2
query_net = encoder()
key_net = copy.deepcopy(query_net).requires_grad_(False)
bank = Bank(256, 16)
opt = torch.optim.SGD(query_net.parameters(), lr=0.1, momentum=0.9)

for step in range(80):
    a, b = views(32)
    q = F.normalize(query_net(a), dim=1)
    with torch.no_grad():
        k = F.normalize(key_net(b), dim=1)
    pos = (q * k).sum(1, keepdim=True)
    neg = q @ bank.rows.T
    logits = torch.hstack((pos, neg)) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for pk, pq in zip(key_net.parameters(), query_net.parameters()):
            pk.lerp_(pq, 0.05)
    bank.push(k)
    if step % 20 == 19:
        print(f"step {step + 1} contrastive {loss.item():.4f}")
