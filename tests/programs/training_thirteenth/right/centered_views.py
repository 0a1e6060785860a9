"""Self-distillation without labels (DINO recipe) on multi-channel sensor windows, judged by k-nearest neighbours."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
LENGTH, CLASSES, OUT, BATCH, EPOCHS = 48, 5, 64, 64, 14
STUDENT_T, TEACHER_T, CENTER_M, FREEZE_LAST = 0.1, 0.05, 0.9, 1


def windows(n):
    label = torch.randint(0, CLASSES, (n,))
    t = torch.arange(LENGTH).float()
    freq = 0.15 + 0.12 * label.float() + 0.02 * torch.randn(n)
    phase = 6.28 * torch.rand(n, 2)
    wave = torch.sin(freq[:, None, None] * t + phase[:, :, None])
    return wave + 0.4 * torch.randn(n, 2, LENGTH), label


def crop(x, length):
    start = torch.randint(0, LENGTH - length + 1, ()).item()
    piece = x[..., start:start + length] * (0.7 + 0.6 * torch.rand(x.shape[0], 1, 1))
    return piece + 0.2 * torch.randn_like(piece)


class DINOHead(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, 32))
        self.last_layer = nn.utils.parametrizations.weight_norm(nn.Linear(32, out, bias=False))
        magnitude = self.last_layer.parametrizations.weight.original0
        magnitude.data.fill_(1.0)
        magnitude.requires_grad = False

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(2, 24, 5, 2, 2), nn.GroupNorm(4, 24), nn.GELU(),
                                     nn.Conv1d(24, 48, 5, 2, 2), nn.GroupNorm(4, 48), nn.GELU())
        self.head = DINOHead(48, OUT)

    def embed(self, x):
        return self.encoder(x).mean(-1)

    def forward(self, x):
        return self.head(self.embed(x))


def knn_accuracy(net, bank, bank_y, query, query_y, k=10):
    with torch.no_grad():
        b, q = F.normalize(net.embed(bank), dim=1), F.normalize(net.embed(query), dim=1)
    votes = bank_y[(q @ b.t()).topk(k, dim=1).indices]
    return (votes.mode(dim=1).values == query_y).float().mean().item()


train_x, train_y = windows(768)
test_x, test_y = windows(384)
student = Net()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad = False
center = torch.zeros(1, OUT)

decay, no_decay = [], []
for p in student.parameters():
    if p.requires_grad:
        (no_decay if p.ndim == 1 else decay).append(p)
optimizer = torch.optim.AdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-3, weight_decay=0.04)
steps, step = EPOCHS * (len(train_x) // BATCH), 0
print(f"k-NN before training {knn_accuracy(teacher, train_x, train_y, test_x, test_y):.3f}")

for epoch in range(EPOCHS):
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        x = train_x[idx]
        views = [crop(x, 36), crop(x, 36), crop(x, 20), crop(x, 20)]
        with torch.no_grad():
            targets = [teacher(v) for v in views[:2]]
        probs = [F.softmax((t - center) / TEACHER_T, dim=-1) for t in targets]
        logp = [F.log_softmax(student(v) / STUDENT_T, dim=-1) for v in views]
        terms = [-(p * lp).sum(-1).mean() for i, p in enumerate(probs) for j, lp in enumerate(logp) if i != j]
        loss = sum(terms) / len(terms)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 3.0)
        if epoch < FREEZE_LAST:
            for p in student.head.last_layer.parameters():
                p.grad = None
        optimizer.step()
        with torch.no_grad():
            m = 1 - 0.02 * (math.cos(math.pi * step / steps) + 1) / 2
            for p, q in zip(teacher.parameters(), student.parameters()):
                p.mul_(m).add_(q, alpha=1 - m)
            center = center * CENTER_M + torch.cat(targets).mean(0, keepdim=True) * (1 - CENTER_M)
        total += loss.item()
        step += 1
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}  loss {total / (len(train_x) // BATCH):.3f}  "
              f"k-NN {knn_accuracy(teacher, train_x, train_y, test_x, test_y):.3f}")
