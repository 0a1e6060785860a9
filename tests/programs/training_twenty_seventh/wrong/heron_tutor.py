"""Distil a wide teacher into a small student, teacher outputs computed once up front."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--teacher-epochs", type=int, default=12)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--temperature", type=float, default=3.0)
    ap.add_argument("--alpha", type=float, default=0.7, help="weight of the soft loss")
    ap.add_argument("--seed", type=int, default=11)
    return ap.parse_args([])


class Birds(Dataset):
    """Feature vectors of birds; a part of the training labels comes from hurried annotators."""

    def __init__(self, n, protos, gen, label_noise=0.0):
        k = len(protos)
        clean = torch.randint(k, (n,), generator=gen)
        self.x = protos[clean] + 1.1 * torch.randn(n, protos.size(1), generator=gen)
        noisy = torch.rand(n, generator=gen) < label_noise
        self.y = torch.where(noisy, torch.randint(k, (n,), generator=gen), clean)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


def mlp(d, hidden, k):
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, k))


def fit_teacher(model, loader, epochs):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    for _ in range(epochs):
        model.train()
        for _, x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y, label_smoothing=0.05).backward()
            opt.step()
    return model


@torch.no_grad()
def precompute_logits(teacher, loader):
    teacher.eval()
    chunks = [teacher(x) for _, x, _ in loader]
    return torch.cat(chunks)


def distil_loss(student_logits, teacher_logits, y, T, alpha):
    soft = F.kl_div(F.log_softmax(student_logits / T, -1), F.log_softmax(teacher_logits / T, -1),
                    log_target=True, reduction="batchmean") * T * T
    return alpha * soft + (1 - alpha) * F.cross_entropy(student_logits, y)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return sum((model(x).argmax(-1) == y).sum().item() for _, x, y in loader) / len(loader.dataset)


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    protos = torch.randn(8, 20, generator=gen)
    train_set, test_set = Birds(1200, protos, gen, label_noise=0.3), Birds(1000, protos, gen)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)

    teacher = fit_teacher(mlp(20, 256, 8), train_loader, args.teacher_epochs)
    print(f"teacher: test acc {accuracy(teacher, test_loader):.3f}")
    teacher_logits = precompute_logits(teacher, train_loader)

    student = mlp(20, 24, 8)
    opt = torch.optim.Adam(student.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        student.train()
        running = 0.0
        for i, x, y in train_loader:
            loss = distil_loss(student(x), teacher_logits[i], y, args.temperature, args.alpha)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item() * len(x)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d} loss {running / len(train_set):.4f} student acc {accuracy(student, test_loader):.3f}")
    final = accuracy(student, test_loader)
    return teacher, student, teacher_logits, train_set, final


if __name__ == "__main__":
    teacher, student, teacher_logits, train_set, final = main()
