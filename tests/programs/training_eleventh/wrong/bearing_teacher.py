"""Semi-supervised classification of bearing vibration: an averaged teacher writes the pseudo-labels."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
CLASSES, LENGTH = 5, 48
STEPS, THRESHOLD, DECAY = 250, 0.8, 0.97


def make_signals(n, noise=0.8):
    labels = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    freq = 3.0 + 2.0 * labels.float()
    phase = 2 * math.pi * torch.rand(n, 1)
    carrier = torch.sin(2 * math.pi * freq[:, None] * t + phase)
    return (carrier + noise * torch.randn(n, LENGTH)).unsqueeze(1), labels


def weak(x):
    return torch.roll(x, int(torch.randint(-3, 4, (1,))), dims=-1)


def strong(x):
    x = torch.roll(x, int(torch.randint(-16, 17, (1,))), dims=-1)
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1, 1))
    start = int(torch.randint(0, LENGTH - 8, (1,)))
    x[..., start:start + 8] = 0.0
    return x


class SignalNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(), nn.AdaptiveMaxPool1d(1))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


@torch.no_grad()
def update_teacher(teacher, student, step):
    decay = min(DECAY, 1 - 1 / (step + 1))
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.mul_(decay).add_(fast, alpha=1 - decay)


x_lab, y_lab = make_signals(80)
x_unl, _ = make_signals(1200)
x_test, y_test = make_signals(800)

student = SignalNet()
teacher = copy.deepcopy(student).eval()
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3, weight_decay=1e-4)

for step in range(STEPS):
    student.train()
    pick_l = torch.randint(0, len(x_lab), (32,))
    pick_u = torch.randint(0, len(x_unl), (64,))
    with torch.no_grad():
        confidence, pseudo = F.softmax(teacher(weak(x_unl[pick_u])), dim=-1).max(dim=-1)
        mask = confidence.ge(THRESHOLD).float()

    logits = student(torch.cat([weak(x_lab[pick_l]), strong(x_unl[pick_u])]))
    sup = F.cross_entropy(logits[:32], y_lab[pick_l])
    unsup = (F.cross_entropy(logits[32:], pseudo, reduction="none") * mask).mean()
    loss = sup + min(1.0, step / 100) * unsup

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(teacher, student, step)
    if (step + 1) % 50 == 0:
        print(f"step {step + 1}: sup {sup.item():.3f}  unsup {unsup.item():.3f}  used {mask.mean().item():.2f}")

student.eval()
with torch.no_grad():
    student_acc = (student(x_test).argmax(-1) == y_test).float().mean().item()
    teacher_acc = (teacher(x_test).argmax(-1) == y_test).float().mean().item()
print(f"test accuracy: student {student_acc:.3f}  teacher {teacher_acc:.3f}")
