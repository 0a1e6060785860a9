"""Digit-like stroke images from two scanners: adapting batch norm to the new scanner.

A CNN is trained on scanner A. Scanner B has another brightness and contrast, so the statistics
of the norm layers are estimated again on unlabelled pages from B; no weight is touched.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

SIDE = 12
EPOCHS = 5
BATCH = 50
N_CLASSES = 4


def make_pages(n, scanner):
    y = torch.randint(0, N_CLASSES, (n,))
    x = torch.zeros(n, SIDE, SIDE)
    for i in range(n):
        a, b = torch.randint(3, SIDE - 3, (2,)).tolist()
        if y[i] in (0, 2):
            x[i, a, 1:-1] = 1.0
        if y[i] in (1, 2):
            x[i, 1:-1, b] = 1.0
        if y[i] == 3:
            x[i] += torch.eye(SIDE)
    x = x + 0.25 * torch.randn_like(x)
    if scanner == "B":
        x = 2.5 * x - 1.6
    return x.unsqueeze(1), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(16 * 9, N_CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def adapt_statistics(model, pages):
    """Returns a copy whose running statistics are the plain average over the given pages."""
    adapted = copy.deepcopy(model)
    adapted.eval()
    for module in adapted.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
            module.train()
    with torch.no_grad():
        for chunk in pages.split(100):
            adapted(chunk)
    return adapted.eval()


train_x, train_y = make_pages(800, "A")
test_a, label_a = make_pages(400, "A")
unlabelled_b, _ = make_pages(500, "B")
test_b, label_b = make_pages(400, "B")

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(train_x))
    total = 0.0
    for rows in order.split(BATCH):
        loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    print(f"epoch {epoch}: loss {total / len(train_x):.4f}  scanner A {accuracy(model, test_a, label_a):.3f}")

adapted = adapt_statistics(model, unlabelled_b)
print(f"scanner B before: {accuracy(model, test_b, label_b):.3f}")
print(f"scanner B after:  {accuracy(adapted, test_b, label_b):.3f}")
same = all(torch.equal(p, q) for p, q in zip(model.parameters(), adapted.parameters()))
print(f"weights unchanged: {same}, scanner A with the old statistics: {accuracy(model, test_a, label_a):.3f}")
