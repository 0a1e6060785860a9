"""FitNet style distillation: logits plus a hint on the hidden layer."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
T, ALPHA, BETA = 3.0, 0.7, 0.5


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 64)
        self.out = nn.Linear(64, 4)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return h, self.out(h)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 12)
        self.out = nn.Linear(12, 4)
        self.regressor = nn.Linear(12, 64)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        return self.regressor(h), self.out(h)


def fit_teacher(teacher, x, y, epochs=15):
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(128):
            loss = F.cross_entropy(teacher(x[idx])[1], y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad_(False)


def kd_loss(student_logits, teacher_logits):
    log_p = F.log_softmax(student_logits / T, dim=1)
    q = F.softmax(teacher_logits / T, dim=1)
    return F.kl_div(log_p, q, reduction="batchmean") * T * T


def hint_loss(hint, target):
    return F.mse_loss(hint, target).item()


x = torch.randn(640, 20)
y = (torch.sin(x[:, :4] * 2) + x[:, 4:8]).argmax(dim=1)
x_tr, y_tr, x_te, y_te = x[:512], y[:512], x[512:], y[512:]

teacher = Teacher()
fit_teacher(teacher, x_tr, y_tr)
student = Student()
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)

for epoch in range(10):
    for idx in torch.randperm(len(x_tr)).split(64):
        with torch.no_grad():
            t_hidden, t_logits = teacher(x_tr[idx])
        hint, logits = student(x_tr[idx])
        ce = F.cross_entropy(logits, y_tr[idx])
        loss = (1 - ALPHA) * ce + ALPHA * kd_loss(logits, t_logits) + BETA * hint_loss(hint, t_hidden)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        acc = (student(x_te)[1].argmax(1) == y_te).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} test acc {acc:.3f}")
