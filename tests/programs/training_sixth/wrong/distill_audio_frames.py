"""Knowledge distillation of an audio frame classifier into a smaller student."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def spectral_frames(n, bands=40, classes=6, loudness=0.0):
    g = torch.linspace(0, 1, bands)
    y = torch.randint(0, classes, (n,))
    centre = (y.float() + 0.5) / classes
    bump = torch.exp(-((g[None] - centre[:, None]) ** 2) / 0.01)
    gain = loudness + 0.6 * torch.randn(n, 1)
    return bump * 1.5 + gain + 0.8 * torch.randn(n, bands), y


def make_net(bands, width, depth, classes, p=0.0):
    layers, d = [], bands
    for _ in range(depth):
        layers += [nn.Linear(d, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p)]
        d = width
    return nn.Sequential(*layers, nn.Linear(d, classes))


class Distiller(nn.Module):
    def __init__(self, teacher, student, temperature=3.0, alpha=0.7):
        super().__init__()
        self.teacher = teacher
        self.student = student
        self.temperature = temperature
        self.alpha = alpha
        self.teacher.requires_grad_(False)
        self.teacher.eval()

    def forward(self, x, y):
        with torch.no_grad():
            teacher_logits = self.teacher(x)
        student_logits = self.student(x)
        t = self.temperature
        soft = F.kl_div(
            F.log_softmax(student_logits / t, dim=1),
            F.log_softmax(teacher_logits / t, dim=1),
            reduction="batchmean", log_target=True,
        ) * t * t
        hard = F.cross_entropy(student_logits, y)
        return self.alpha * soft + (1 - self.alpha) * hard


def fit_teacher(x, y, epochs=8):
    teacher = make_net(x.size(1), 96, 3, 6, p=0.3)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(epochs):
        teacher.train()
        for idx in torch.randperm(x.size(0)).split(64):
            loss = F.cross_entropy(teacher(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return teacher


@torch.no_grad()
def accuracy(net, x, y):
    return (net(x).argmax(1) == y).float().mean().item()


torch.manual_seed(8)
x_teacher, y_teacher = spectral_frames(1500)
x_train, y_train = spectral_frames(600, loudness=0.8)
x_test, y_test = spectral_frames(600)

teacher = fit_teacher(x_teacher, y_teacher)
teacher.eval()
print(f"teacher accuracy {accuracy(teacher, x_test, y_test):.3f}")

distiller = Distiller(teacher, make_net(40, 24, 2, 6))
optimizer = torch.optim.Adam(distiller.student.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
for epoch in range(15):
    distiller.train()
    total = 0.0
    for idx in torch.randperm(x_train.size(0)).split(50):
        loss = distiller(x_train[idx], y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * idx.numel()
    scheduler.step()
    distiller.eval()
    if epoch % 5 == 4:
        acc = accuracy(distiller.student, x_test, y_test)
        print(f"epoch {epoch} loss {total / x_train.size(0):.3f} student accuracy {acc:.3f}")
