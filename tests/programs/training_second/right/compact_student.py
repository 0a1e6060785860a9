import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(201)


def classifier(hidden, dropout):
    return nn.Sequential(
        nn.Linear(10, hidden),
        nn.SiLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.SiLU(),
        nn.Linear(hidden, 4),
    )


def signals(n):
    x = torch.randn(n, 10)
    left = x[:, 0] + x[:, 1] * x[:, 2]
    right = x[:, 3] - x[:, 4].abs() + 0.8
    return x, 2 * (left > 0).long() + (right > 0).long()


class Distiller:
    def __init__(self, teacher, temperature=3.0, mix=0.7):
        self.teacher = teacher.eval().requires_grad_(False)
        self.temperature, self.mix = temperature, mix

    def loss(self, x, y, student_logits):
        t = self.temperature
        with torch.no_grad():
            teacher_logits = self.teacher(x)
        soft = F.kl_div(
            F.log_softmax(student_logits / t, dim=1),
            F.log_softmax(teacher_logits / t, dim=1),
            reduction="batchmean",
            log_target=True,
        )
        hard = F.cross_entropy(student_logits, y)
        return self.mix * t * t * soft + (1 - self.mix) * hard


def train(model, data, criterion, steps, lr):
    x, y = data
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(x), (40,))
        loss = criterion(x[rows], y[rows], model(x[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            print(f"  step {step + 1} loss {loss.item():.4f}")


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


train_data, test_data = signals(600), signals(300)
print("teacher")
teacher = classifier(64, dropout=0.1)
train(teacher, train_data, lambda x, y, out: F.cross_entropy(out, y), 120, 6e-3)
print("student")
student = classifier(16, dropout=0.02)
train(student, train_data, Distiller(teacher).loss, 120, 1e-2)
print(f"teacher {accuracy(teacher, test_data):.3f} student {accuracy(student, test_data):.3f}")
