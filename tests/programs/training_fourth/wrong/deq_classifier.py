"""A deep-equilibrium classifier: the hidden state is the fixed point of one cell, found by iteration without a graph;
one more application of the cell carries the gradient."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

FEATURES, INFORMATIVE, CLASSES = 60, 4, 4
MIXER = torch.linalg.qr(torch.randn(FEATURES, FEATURES)).Q


def make_data(n):
    x = torch.randn(n, FEATURES)
    a, b = x[:, 0] + 0.5 * x[:, 1], x[:, 2] - 0.5 * x[:, 3]
    label = (a > 0).long() * 2 + (b > 0).long()
    return x @ MIXER, label


class EquilibriumCell(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.recurrent = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.recurrent.weight, gain=0.5)

    def forward(self, z, injection):
        return torch.tanh(self.recurrent(z) + injection)


class DEQ(nn.Module):
    def __init__(self, features, hidden, classes, max_iter=25, tol=1e-4):
        super().__init__()
        self.inject = nn.Linear(features, hidden)
        self.cell = EquilibriumCell(hidden)
        self.head = nn.Linear(hidden, classes)
        self.max_iter, self.tol = max_iter, tol
        self.last_iterations = 0

    def forward(self, x):
        with torch.no_grad():
            injection = self.inject(x)
            z = torch.zeros_like(injection)
            for i in range(self.max_iter):
                new = self.cell(z, injection)
                gap = (new - z).norm() / new.norm().clamp(min=1e-8)
                z = new
                if gap < self.tol:
                    break
            self.last_iterations = i + 1
        z = self.cell(z, injection)
        return self.head(z)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        result = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return result


def main():
    train_x, train_y = make_data(2048)
    test_x, test_y = make_data(1024)
    model = DEQ(FEATURES, 16, CLASSES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    for epoch in range(12):
        running = 0.0
        for index in torch.randperm(len(train_x)).split(64):
            loss = F.cross_entropy(model(train_x[index]), train_y[index])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item() * len(index)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: loss {running / len(train_x):.3f}, "
                  f"solver iterations {model.last_iterations}, accuracy {accuracy(model, test_x, test_y):.3f}")
    final = accuracy(model, test_x, test_y)
    print(f"test accuracy {final:.3f} (chance 0.25)")


if __name__ == "__main__":
    main()
