"""Compress an activity classifier for wearables: a wide teacher, and a small student that learns from its soft labels."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)

CLASSES, FEATURES = 6, 20
TEACHER_STEPS, EPOCHS, BATCH = 120, 6, 64
TEMPERATURE, ALPHA = 3.0, 0.8

CENTRES = torch.randn(CLASSES, FEATURES) * 0.9
WARP = torch.randn(FEATURES, FEATURES) / FEATURES ** 0.5


def make_windows(count, gain=1.0, offset=0.0):
    """Feature windows of the sensor; `gain` and `offset` describe the device that recorded them."""
    labels = torch.randint(0, CLASSES, (count,))
    windows = CENTRES[labels] + 0.8 * torch.randn(count, FEATURES)
    windows = windows + 0.5 * torch.tanh(windows @ WARP)
    return gain * windows + offset, labels


def mlp(width, depth, dropout):
    layers, size = [], FEATURES
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout)]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, CLASSES))


@torch.no_grad()
def accuracy(net, windows, labels):
    net.eval()
    return (net(windows).argmax(dim=1) == labels).float().mean().item()


def train_teacher(windows, labels):
    teacher = mlp(width=96, depth=2, dropout=0.4)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    teacher.train()
    for _ in range(TEACHER_STEPS):
        rows = torch.randint(0, len(windows), (BATCH,))
        loss = F.cross_entropy(teacher(windows[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return teacher


class Distiller(nn.Module):
    """Student and fixed teacher in one module, so that they move between devices together."""

    def __init__(self, teacher, student):
        super().__init__()
        self.student = student
        self.teacher = teacher.eval()
        for parameter in self.teacher.parameters():
            parameter.requires_grad_(False)

    def forward(self, windows):
        return self.student(windows)

    def loss(self, windows, labels):
        with torch.no_grad():
            soft = F.softmax(self.teacher(windows) / TEMPERATURE, dim=1)
        logits = self.student(windows)
        log_probs = F.log_softmax(logits / TEMPERATURE, dim=1)
        distill = F.kl_div(log_probs, soft, reduction="batchmean") * TEMPERATURE ** 2
        return ALPHA * distill + (1 - ALPHA) * F.cross_entropy(logits, labels)


source_x, source_y = make_windows(1536)
test_x, test_y = make_windows(1024)
teacher = train_teacher(source_x, source_y)
print(f"teacher: test accuracy {accuracy(teacher, test_x, test_y):.3f}")

device_x, device_y = make_windows(768, gain=0.8, offset=0.4)
device_test_x, device_test_y = make_windows(1024, gain=0.8, offset=0.4)

distiller = Distiller(teacher, mlp(width=16, depth=1, dropout=0.0))
optimizer = torch.optim.Adam(distiller.student.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)

for epoch in range(EPOCHS):
    distiller.train()
    total = 0.0
    for rows in torch.randperm(len(device_x)).split(BATCH):
        loss = distiller.loss(device_x[rows], device_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    hits = accuracy(distiller, device_test_x, device_test_y)
    print(f"epoch {epoch + 1}  loss {total / len(device_x):.4f}  student accuracy on the device {hits:.3f}")

agree = accuracy(distiller.student, device_test_x, distiller.teacher(device_test_x).argmax(dim=1))
print(f"student: test accuracy {accuracy(distiller.student, test_x, test_y):.3f}, agreement with the teacher {agree:.3f}")
