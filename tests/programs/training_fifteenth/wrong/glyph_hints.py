"""Feature-hint distillation: a narrow student with few labels learns from a wide teacher's maps."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
CLASSES = 8
SIZE = 12


def make_glyphs(n, rng, prototypes):
    y = rng.integers(0, CLASSES, n)
    x = prototypes[y].copy()
    for i in range(n):
        x[i] = np.roll(x[i], rng.integers(-2, 3, 2), axis=(0, 1))
    x = x + 0.45 * rng.standard_normal(x.shape)
    return torch.tensor(x[:, None].astype(np.float32)), torch.tensor(y)


class ConvNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(width * 9, CLASSES)

    def forward(self, x):
        h = F.max_pool2d(self.body(self.stem(x)), 2)
        return self.head(h.flatten(1))


class Tap:
    """Keeps the latest output of a module so that the loss can look at it."""

    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self.store)

    def store(self, module, args, output):
        self.value = output.detach()

    def remove(self):
        self.handle.remove()


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train_teacher(model, x, y, epochs=10):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(model(x[idx]), y[idx]).backward()
            opt.step()
    return model.eval().requires_grad_(False)


def distill(student, teacher, x, y, pool, epochs=25, weight=4.0):
    adapter = nn.Conv2d(student.body[0].out_channels, teacher.body[0].out_channels, 1)
    student_tap, teacher_tap = Tap(student.body), Tap(teacher.body)
    opt = torch.optim.Adam([*student.parameters(), *adapter.parameters()], lr=2e-3)
    student.train()
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(16):
            batch = torch.cat([x[idx], pool[torch.randint(len(pool), (32,))]])
            with torch.no_grad():
                teacher(batch)
            logits = student(batch)[: len(idx)]
            hint = F.mse_loss(adapter(student_tap.value), teacher_tap.value)
            task = F.cross_entropy(logits, y[idx])
            opt.zero_grad()
            (task + weight * hint).backward()
            opt.step()
        if epoch % 6 == 0:
            print(f"epoch {epoch:2d}  task {task.item():.4f}  hint {hint.item():.4f}")
    student_tap.remove()
    teacher_tap.remove()
    return hint.item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    prototypes = (rng.random((CLASSES, SIZE, SIZE)) < 0.3).astype(np.float64)
    big, small, test = (make_glyphs(n, rng, prototypes) for n in (2000, 160, 1000))
    teacher = train_teacher(ConvNet(24), *big)
    student = ConvNet(12)
    hint = distill(student, teacher, *small, pool=big[0])
    teacher_acc, student_acc = accuracy(teacher, *test), accuracy(student, *test)
    print(f"teacher acc {teacher_acc:.3f}  student acc {student_acc:.3f}  last hint {hint:.4f}")


if __name__ == "__main__":
    main()
