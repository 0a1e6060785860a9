import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(40)


class HandMomentum:
    def __init__(self, tensors, rate, keep=0.8):
        self.slots = [(p, torch.zeros_like(p)) for p in tensors]
        self.rate, self.keep = rate, keep

    @torch.no_grad()
    def apply(self):
        for p, v in self.slots:
            v.mul_(self.keep).add_(p.grad)
            p.sub_(self.rate * v)

    def forget(self):
        for p, _ in self.slots:
            p.grad = None


class Session:
    def __init__(self, net, chunks=4):
        self.net, self.chunks = net, chunks
        self.rule = HandMomentum(list(net.parameters()), rate=0.15)

    def update(self, images, labels):
        shown = 0.0
        self.rule.forget()
        for part, tags in zip(images.chunk(self.chunks), labels.chunk(self.chunks)):
            loss = F.cross_entropy(self.net(part), tags) / self.chunks
            loss.backward()
            shown += loss.item()
        self.rule.apply()
        return shown


def leaves(n):
    labels = torch.randint(3, (n,))
    images = 0.4 * torch.randn(n, 1, 8, 8)
    for i, k in enumerate(labels.tolist()):
        for _ in range(2 * k + 1):
            r, c = torch.randint(8, (2,)).tolist()
            images[i, 0, r, c] += 2.0
    return images, labels


net = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(54, 3)
)
work = Session(net)
images, labels = leaves(480)
for step in range(60):
    rows = torch.randint(400, (32,))
    value = work.update(images[rows], labels[rows])
    if step % 15 == 14:
        print(f"update {step + 1}: loss {value:.4f}")
with torch.no_grad():
    print(f"test loss {F.cross_entropy(net(images[400:]), labels[400:]):.4f}")
