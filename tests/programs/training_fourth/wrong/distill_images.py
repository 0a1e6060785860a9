"""Distillation of a convolutional teacher into a small student on noisy 8 x 8 pictures, with noise augmentation."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

TEMPLATES = torch.randn(6, 1, 8, 8)


def pictures(n):
    y = torch.randint(len(TEMPLATES), (n,))
    return 0.5 * TEMPLATES[y] + 0.7 * torch.randn(n, 1, 8, 8), y


def augment(x):
    """Strong brightness and contrast changes on half of the pictures."""
    gain = torch.empty(len(x), 1, 1, 1).uniform_(1.5, 4.0)
    shift = torch.empty(len(x), 1, 1, 1).uniform_(1.0, 3.0)
    return x * gain + shift


class ConvTeacher(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.AvgPool2d(2),
        )
        self.head = nn.Linear(4 * width, len(TEMPLATES))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, len(TEMPLATES)))

    def forward(self, x):
        return self.net(x)


class Distiller(nn.Module):
    def __init__(self, teacher, student, temperature=2.0):
        super().__init__()
        self.teacher, self.student, self.temperature = teacher, student, temperature
        self.teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.temperature, 1)
        log_student = F.log_softmax(self.student(x) / self.temperature, 1)
        return F.kl_div(log_student, soft, reduction="batchmean") * self.temperature**2


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def train_teacher(x, y, epochs=5):
    net = ConvTeacher()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for _ in range(epochs):
        net.train()
        for index in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[index]), y[index])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return net


def main():
    x, y = pictures(1200)
    test_x, test_y = pictures(1000)
    teacher = train_teacher(x, y)
    teacher_before = accuracy(teacher, test_x, test_y)
    student = Student()
    distiller = Distiller(teacher, student)
    opt = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(8):
        distiller.train()
        for index in torch.randperm(len(x)).split(64):
            clean, changed = x[index].chunk(2)
            loss = distiller(torch.cat([clean, augment(changed)]))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1}: distillation loss {loss.item():.3f}, student {accuracy(student, test_x, test_y):.3f}")
    student_final, teacher_after = accuracy(student, test_x, test_y), accuracy(teacher, test_x, test_y)
    print(f"teacher {teacher_before:.3f} when trained, {teacher_after:.3f} at the end; student {student_final:.3f}")


if __name__ == "__main__":
    main()
