import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)


def make_vowels(n=1280, dims=20, classes=5):
    means = torch.randn(classes, dims, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, classes, (n,))
    return TensorDataset(means[y] + 1.3 * torch.randn(n, dims), y)


def find_lr(model, loader, optimizer, criterion, start_lr=1e-5, end_lr=1.0):
    model.train()
    num = len(loader) - 1
    mult = (end_lr / start_lr) ** (1 / num)
    lr = start_lr
    optimizer.param_groups[0]["lr"] = lr
    avg_loss, best_loss = 0.0, 0.0
    losses, lrs = [], []
    for batch_num, (inputs, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        avg_loss = 0.7 * avg_loss + 0.3 * loss.item()
        smoothed = avg_loss / (1 - 0.7 ** batch_num)
        if batch_num == 1 or smoothed < best_loss:
            best_loss = smoothed
        losses.append(smoothed)
        lrs.append(lr)
        loss.backward()
        optimizer.step()
        lr *= mult
        optimizer.param_groups[0]["lr"] = lr
    return lrs[int(np.argmin(losses))] / 10


def accuracy(model, dataset):
    model.eval()
    x, y = dataset.tensors
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


train_set, test_set = make_vowels(), make_vowels(400)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=0.9)

lr = find_lr(model, train_loader, optimizer, criterion)
print(f"suggested learning rate {lr:.2e}")
for group in optimizer.param_groups:
    group["lr"] = lr

for epoch in range(6):
    model.train()
    running = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch}: loss {running / len(train_loader):.4f} test acc {accuracy(model, test_set):.3f}")
