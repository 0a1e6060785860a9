"""Semi-supervised learning with a mean teacher."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

DECAY, CONSISTENCY = 0.97, 2.0


def spirals(n):
    y = torch.randint(2, (n,))
    r = 0.3 + 1.7 * torch.rand(n)
    angle = 2.0 * r + torch.pi * y
    x = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return x + 0.08 * torch.randn(n, 2), y


def make_net():
    return nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 2))


@torch.no_grad()
def update_teacher(teacher, student):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(DECAY).add_(s, alpha=1 - DECAY)


def jitter(x):
    return x + 0.1 * torch.randn_like(x)


def main():
    torch.manual_seed(18)
    labelled_x, labelled_y = spirals(64)
    unlabelled_x, _ = spirals(512)
    test_x, test_y = spirals(512)
    student = make_net()
    teacher = copy.deepcopy(student).requires_grad_(False)
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    for step in range(150):
        idx = torch.randint(len(unlabelled_x), (64,))
        supervised = F.cross_entropy(student(jitter(labelled_x)), labelled_y)
        with torch.no_grad():
            target = teacher(jitter(unlabelled_x[idx])).softmax(dim=1)
        consistency = F.mse_loss(student(jitter(unlabelled_x[idx])).softmax(dim=1), target)
        ramp = min(1.0, step / 50)
        loss = supervised + ramp * CONSISTENCY * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        update_teacher(teacher, student)
        if step % 50 == 49:
            with torch.no_grad():
                accs = [(m(test_x).argmax(1) == test_y).float().mean().item() for m in (student, teacher)]
            print(f"step {step}: loss {loss.item():.4f} student {accs[0]:.3f} teacher {accs[1]:.3f}")


if __name__ == "__main__":
    main()
