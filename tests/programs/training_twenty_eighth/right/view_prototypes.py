"""Self-distillation without labels (DINO, Caron et al., 2021) on synthetic feature vectors."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm

KINDS, DIM, PROTOTYPES = 10, 32, 40


def make_features(n, generator):
    centres = 1.0 * torch.randn(KINDS, DIM, generator=torch.Generator().manual_seed(12))
    kind = torch.randint(0, KINDS, (n,), generator=generator)
    return centres[kind] + torch.randn(n, DIM, generator=generator), kind


def crop(x, keep):
    return x * (torch.rand_like(x) < keep).float() / keep + 0.1 * torch.randn_like(x)


class Head(nn.Module):
    def __init__(self, inputs, hidden=48, bottleneck=16):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, bottleneck))
        self.last = weight_norm(nn.Linear(bottleneck, PROTOTYPES, bias=False))
        self.last.parametrizations.weight.original0.data.fill_(1.0)
        self.last.parametrizations.weight.original0.requires_grad = False

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


def build():
    backbone = nn.Sequential(nn.Linear(DIM, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 32), nn.LayerNorm(32))
    return nn.Sequential(backbone, Head(32))


class DinoLoss(nn.Module):
    def __init__(self, student_temp=0.1, teacher_temp=0.05, momentum=0.9):
        super().__init__()
        self.student_temp, self.teacher_temp, self.momentum = student_temp, teacher_temp, momentum
        self.register_buffer("centre", torch.zeros(1, PROTOTYPES))

    def forward(self, student_views, teacher_views):
        targets = [F.softmax((t - self.centre) / self.teacher_temp, dim=-1).detach() for t in teacher_views]
        total, terms = 0.0, 0
        for i, target in enumerate(targets):
            for j, view in enumerate(student_views):
                if i == j:
                    continue
                total = total - (target * F.log_softmax(view / self.student_temp, dim=-1)).sum(-1).mean()
                terms += 1
        self.update_centre(torch.cat(teacher_views))
        return total / terms

    @torch.no_grad()
    def update_centre(self, output):
        self.centre.mul_(self.momentum).add_(output.mean(dim=0, keepdim=True), alpha=1 - self.momentum)


def parameter_groups(model):
    decay = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    plain = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    return [{"params": decay}, {"params": plain, "weight_decay": 0.0}]


def cosine(start, end, step, steps):
    return end + 0.5 * (start - end) * (1 + math.cos(math.pi * step / steps))


@torch.no_grad()
def knn(encoder, bank, bank_kind, query, query_kind):
    similarity = F.normalize(encoder(query), dim=1) @ F.normalize(encoder(bank), dim=1).T
    votes = bank_kind[similarity.topk(7, dim=1).indices]
    return (votes.mode(dim=1).values == query_kind).float().mean().item()


def main(steps=120, hold_last=20):
    torch.manual_seed(31)
    x, kind = make_features(1000, torch.Generator().manual_seed(1))
    x_test, kind_test = make_features(300, torch.Generator().manual_seed(2))
    student, teacher = build(), build()
    teacher.load_state_dict(student.state_dict())
    for p in teacher.parameters():
        p.requires_grad = False
    criterion = DinoLoss()
    optimizer = torch.optim.AdamW(parameter_groups(student), lr=0.0)
    for step in range(steps):
        warm = min(1.0, (step + 1) / 20)
        for i, group in enumerate(optimizer.param_groups):
            group["lr"] = warm * cosine(3e-3, 1e-4, step, steps)
            if i == 0:
                group["weight_decay"] = cosine(0.04, 0.2, step, steps)
        batch = x[torch.randint(0, len(x), (128,))]
        views = [crop(batch, 0.7), crop(batch, 0.7), crop(batch, 0.4), crop(batch, 0.4)]
        loss = criterion([student(v) for v in views], [teacher(v) for v in views[:2]])
        optimizer.zero_grad()
        loss.backward()
        for p in student.parameters():
            if p.grad is not None:
                nn.utils.clip_grad_norm_([p], 1.0)
        if step < hold_last:
            for p in student[1].last.parameters():
                p.grad = None
        optimizer.step()
        momentum = cosine(0.95, 1.0, step, steps)
        for q, k in zip(student.parameters(), teacher.parameters()):
            k.data.mul_(momentum).add_((1 - momentum) * q.detach().data)
        if step % 40 == 0 or step == steps - 1:
            score = knn(teacher[0], x, kind, x_test, kind_test)
            print(f"step {step:3d}  loss {loss.item():.4f}  kNN of teacher {score:.3f}")
    return student, teacher, criterion


if __name__ == "__main__":
    student, teacher, criterion = main()
