"""Knowledge distillation (Hinton et al. 2015): a batch-normalised teacher and a small student."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, CLASSES = 24, 10


def block(i, o):
    return nn.Sequential(nn.Linear(i, o, bias=False), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(0.1))


def make_teacher():
    return nn.Sequential(block(DIM, 128), block(128, 128), nn.Linear(128, CLASSES))


class Distiller(nn.Module):
    """The student with its teacher. `parameters()`, `state_dict()`, `train()` concern the student alone."""

    def __init__(self, student, teacher, temperature=3.0, alpha=0.7):
        super().__init__()
        self.student = student
        self.temperature, self.alpha = temperature, alpha
        # in a tuple so that nn.Module does not register it
        self._teacher = (teacher.eval().requires_grad_(False),)

    @property
    def teacher(self):
        return self._teacher[0]

    def forward(self, x, y):
        logits = self.student(x)
        soft = self.teacher(x)
        t = self.temperature
        log_p, log_q = F.log_softmax(logits / t, dim=-1), F.log_softmax(soft / t, dim=-1)
        kd = F.kl_div(log_p, log_q, reduction="batchmean", log_target=True)
        ce = F.cross_entropy(logits, y)
        return self.alpha * t * t * kd + (1 - self.alpha) * ce, kd.detach()


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(CLASSES, 3, DIM, generator=torch.Generator().manual_seed(42))
    y = torch.randint(CLASSES, (n,), generator=g)
    mode = torch.randint(3, (n,), generator=g)
    return 0.6 * basis[y, mode] + 0.5 * torch.randn(n, DIM, generator=g), y


def batches(x, y, size=60):
    for idx in torch.randperm(len(x)).split(size):
        yield x[idx], y[idx]


@torch.no_grad()
def accuracy(model, x, y):
    was_training = model.training
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train(was_training)
    return acc


def fit_teacher(x, y, epochs=8):
    teacher = make_teacher()
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(epochs):
        for xb, yb in batches(x, y):
            opt.zero_grad()
            F.cross_entropy(teacher(xb), yb, label_smoothing=0.05).backward()
            opt.step()
    return teacher


def distill(distiller, x, y, xv, yv, epochs=20):
    opt = torch.optim.Adam(distiller.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    best, best_state = -1.0, None
    for epoch in range(epochs):
        distiller.train()
        for xb, yb in batches(x, y):
            loss, kd = distiller(xb, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        acc = accuracy(distiller.student, xv, yv)
        if acc > best:
            best, best_state = acc, copy.deepcopy(distiller.state_dict())
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  kd {kd.item():.4f}  val {acc:.3f}")
    distiller.load_state_dict(best_state)
    return distiller


def main():
    torch.manual_seed(0)
    x, y = make_data(2400, 1)
    xv, yv = make_data(800, 2)
    xt, yt = make_data(1500, 3)
    teacher = fit_teacher(x, y)
    student = nn.Sequential(nn.Linear(DIM, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, CLASSES))
    distiller = distill(Distiller(student, teacher), x[:600], y[:600], xv, yv)
    print(f"test accuracy: teacher {accuracy(teacher, xt, yt):.3f}, student {accuracy(distiller.student, xt, yt):.3f}")


if __name__ == "__main__":
    main()
