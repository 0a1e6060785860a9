"""Residual network with binarised activations, straight-through estimator as a custom autograd Function."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SignSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_output[x.abs() > 1] = 0
        return grad_output


class BinaryActivation(nn.Module):
    def forward(self, x):
        return SignSTE.apply(x)


class BinaryBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.linear = nn.Linear(dim, dim)
        self.scale = nn.BatchNorm1d(dim)
        self.act = BinaryActivation()

    def forward(self, x):
        h = self.scale(self.linear(self.norm(x)))
        return x + self.act(h)


class BinaryResNet(nn.Module):
    def __init__(self, in_dim=20, dim=48, blocks=4, classes=4):
        super().__init__()
        self.stem = nn.Linear(in_dim, dim)
        self.blocks = nn.Sequential(*[BinaryBlock(dim) for _ in range(blocks)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class Teacher:
    def __init__(self, in_dim, classes):
        self.w1 = torch.randn(in_dim, 32)
        self.w2 = torch.randn(32, classes)

    def label(self, x):
        return (torch.tanh(x @ self.w1) @ self.w2).argmax(1)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main(epochs=12, batch=64, lr=3e-3):
    torch.manual_seed(14)
    teacher = Teacher(20, 4)
    x, x_test = torch.randn(2000, 20), torch.randn(1000, 20)
    y, y_test = teacher.label(x), teacher.label(x_test)
    model = BinaryResNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(x.size(0)).split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * idx.numel()
        scheduler.step()
        if epoch % 4 == 3:
            acc = evaluate(model, x_test, y_test)
            print(f"epoch {epoch} loss {total / x.size(0):.3f} test accuracy {acc:.3f}")
    return model


if __name__ == "__main__":
    model = main()
