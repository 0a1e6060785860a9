"""Knowledge distillation from a wide to a narrow network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
TEMPERATURE, ALPHA = 3.0, 0.7


def mlp(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 4))


def problem(n):
    x = torch.randn(n, 16)
    return x, (torch.sin(2 * x[:, :4]) + x[:, 4:8]).argmax(dim=1)


def train_teacher(x, y):
    teacher = mlp(96)
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for _ in range(12):
        for idx in torch.randperm(len(x)).split(128):
            loss = F.cross_entropy(teacher(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return teacher.eval().requires_grad_(False)


def soft_loss(student_logits, teacher_logits):
    return TEMPERATURE**2 * F.kl_div(
        F.log_softmax(student_logits / TEMPERATURE, dim=1),
        F.softmax(teacher_logits / TEMPERATURE, dim=1),
        reduction="batchmean",
    )


x_tr, y_tr = problem(768)
x_te, y_te = problem(256)
teacher = train_teacher(x_tr, y_tr)
with torch.no_grad():
    teacher_logits = teacher(x_tr)

student = mlp(10)
opt = torch.optim.Adam(student.parameters(), lr=5e-3)
curve = []
for epoch in range(10):
    hard_sum, soft_sum = 0.0, 0.0
    for idx in torch.randperm(len(x_tr)).split(64):
        logits = student(x_tr[idx])
        hard = F.cross_entropy(logits, y_tr[idx])
        soft = soft_loss(logits, teacher_logits[idx])
        opt.zero_grad()
        ((1 - ALPHA) * hard + ALPHA * soft).backward()
        opt.step()
        hard_sum += hard.item() * len(idx)
        soft_sum += soft.item() * len(idx)
    with torch.no_grad():
        acc = (student(x_te).argmax(1) == y_te).float().mean().item()
    curve.append((hard_sum / len(x_tr), soft_sum / len(x_tr), acc))
for epoch, (hard, soft, acc) in enumerate(curve):
    print(f"epoch {epoch}: hard {hard:.4f} soft {soft:.4f} acc {acc:.3f}")
