import torch
from torch import nn
import torch.nn.functional as F


def classifier(inputs, width, classes, drop):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(drop),
        nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(drop),
        nn.Linear(width, classes),
    )


class Distiller(nn.Module):
    def __init__(self, teacher, student, temperature=2.0, hard=0.2):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.temperature, self.hard = temperature, hard

    @torch.no_grad()
    def soft_targets(self, x):
        return F.softmax(self.teacher(x) / self.temperature, dim=-1)

    def forward(self, x, y):
        logits = self.student(x)
        soft = F.kl_div(F.log_softmax(logits / self.temperature, -1), self.soft_targets(x), reduction="batchmean")
        return (1 - self.hard) * self.temperature**2 * soft + self.hard * F.cross_entropy(logits, y)


def blobs(n, g, spread=1.0):
    centre = torch.randn(6, 16, generator=torch.Generator().manual_seed(77))
    y = torch.randint(0, 6, (n,), generator=g)
    return centre[y] + spread * torch.randn(n, 16, generator=g), y


def pretrain(model, x, y, epochs=6):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(epochs):
        for xb, yb in zip(x.split(50), y.split(50)):
            opt.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            opt.step()
    return model


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(-1) == y).float().mean().item()


def distill(pair, x, y, xv, yv, epochs=6):
    opt = torch.optim.Adam(pair.student.parameters(), lr=5e-3)
    for epoch in range(epochs):
        pair.train()
        for xb, yb in zip(x.split(50), y.split(50)):
            loss = pair(xb, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} student {accuracy(pair.student, xv, yv):.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    x, y = blobs(600, g)
    xv, yv = blobs(300, g)
    teacher = pretrain(classifier(16, 64, 6, drop=0.5), x, y)
    print(f"teacher {accuracy(teacher, xv, yv):.3f}")
    pair = Distiller(teacher, classifier(16, 16, 6, drop=0.0))
    distill(pair, x * 1.3 + 0.2, y, xv * 1.3 + 0.2, yv)
