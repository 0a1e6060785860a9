"""Self-ensembling domain adaptation: appliance types from smart-meter traces, lab meters to field meters."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, LENGTH = 4, 48


class TraceNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(8 * width, CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x))


class MeanTeacher:
    """Exponential moving average of a student, used for targets and for the final model."""

    def __init__(self, student, decay):
        self.decay = decay
        self.model = copy.deepcopy(student)
        self.model.requires_grad_(False)
        self.model.eval()

    @torch.no_grad()
    def update(self, student, step):
        decay = min(self.decay, (step + 1) / (step + 10))
        for slow, fast in zip(self.model.parameters(), student.parameters()):
            slow.mul_(decay).add_(fast, alpha=1 - decay)

    @torch.no_grad()
    def probabilities(self, x):
        return F.softmax(self.model(x), dim=1)


def traces(n, field):
    label = torch.randint(0, CLASSES, (n,))
    t = torch.linspace(0, 1, LENGTH)
    freq = torch.tensor([2.0, 3.0, 5.0, 7.0])[label][:, None]
    phase = 2 * math.pi * torch.rand(n, 1)
    x = 3.0 + torch.sin(2 * math.pi * freq * t + phase).sign() + 0.5 * torch.randn(n, LENGTH)
    if field:
        x = 0.8 * x + 0.6 * torch.sin(2 * math.pi * t + phase) + 0.3 * torch.randn(n, LENGTH)
    return x[:, None], label


def augment(x):
    scale = 1 + 0.1 * torch.randn(x.shape[0], 1, 1)
    return scale * x + 0.1 * torch.randn_like(x)


def accuracy(model, x, y):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        result = (model(x).argmax(1) == y).float().mean().item()
    model.train(was_training)
    return result


def main():
    torch.manual_seed(8)
    x_lab, y_lab = traces(512, field=False)
    x_field, _ = traces(512, field=True)
    x_test, y_test = traces(400, field=True)

    student = TraceNet()
    teacher = MeanTeacher(student, decay=0.97)
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    steps = 120

    for step in range(steps):
        i = torch.randint(0, x_lab.shape[0], (32,))
        j = torch.randint(0, x_field.shape[0], (32,))
        lab_logits, field_logits = student(torch.cat([augment(x_lab[i]), augment(x_field[j])])).chunk(2)
        class_loss = F.cross_entropy(lab_logits, y_lab[i])
        target = teacher.probabilities(augment(x_field[j]))
        guess = F.softmax(field_logits, dim=1)
        ramp = math.exp(-5 * (1 - min(1.0, step / 80)) ** 2)
        consistency = (guess - target).pow(2).sum(1).mean()
        loss = class_loss + 3.0 * ramp * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update(student, step)
        if step % 30 == 0:
            print(f"step {step:3d}  class {class_loss.item():.4f}  consistency {consistency.item():.4f}")

    final = accuracy(teacher.model, x_test, y_test)
    print(f"field meters: student {accuracy(student, x_test, y_test):.3f}  ensemble {final:.3f}")
    return student, teacher, final


if __name__ == "__main__":
    student, teacher, final = main()
