import copy

import torch
import torch.nn.functional as F
from torch import nn


def mlp(width, drop):
    return nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Dropout(drop), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4))


def clusters(count, generator):
    y = torch.randint(0, 4, (count,), generator=generator)
    x = torch.randn(count, 8, generator=generator)
    x[torch.arange(count), y] += 1.5
    x[torch.arange(count), y + 4] *= 2.5
    return x, y


def train_teacher(teacher, x, y, epochs):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    teacher.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(teacher(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return teacher.eval().requires_grad_(False)


def distill_loss(student_logits, teacher_logits, labels, temperature=3.0, mix=0.7):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, 1), F.log_softmax(teacher_logits / temperature, 1), reduction="batchmean", log_target=True
    )
    return mix * temperature**2 * soft + (1 - mix) * F.cross_entropy(student_logits, labels)


@torch.no_grad()
def validation_loss(model, x, y):
    model.eval()
    loss = F.cross_entropy(model(x), y).item()
    model.train()
    return loss


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    x, y = clusters(384, generator)
    x_valid, y_valid = clusters(128, generator)
    teacher = train_teacher(mlp(64, drop=0.2), x, y, epochs=8)
    student = mlp(12, drop=0.05)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    best, best_state = float("inf"), None
    for epoch in range(10):
        for idx in torch.randperm(len(x)).split(64):
            with torch.no_grad():
                teacher_logits = teacher(x[idx])
            loss = distill_loss(student(x[idx]), teacher_logits, y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        valid = validation_loss(student, x_valid, y_valid)
        if valid < best:
            best, best_state = valid, copy.deepcopy(student.state_dict())
        print(f"epoch {epoch} distill {loss.item():.4f} valid {valid:.4f}")
    student.load_state_dict(best_state)
    print(f"best {best:.4f} restored {validation_loss(student, x_valid, y_valid):.4f}")


if __name__ == "__main__":
    main()
