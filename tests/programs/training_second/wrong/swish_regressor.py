import torch
from torch import nn
from torch.autograd import Function
from torch.utils.data import DataLoader, TensorDataset


class SwishFunction(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        gate = torch.sigmoid(beta * x)
        slope = x * gate * (1 - gate)
        grad_x = grad_output * (gate + slope)
        grad_beta = (grad_output * x * slope).sum().reshape(beta.shape)
        return grad_x, grad_beta


class Swish(nn.Module):
    def __init__(self, beta=2.0):
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(beta))

    def forward(self, x):
        return SwishFunction.apply(x, self.beta)


def build(inputs, width, depth):
    layers = [nn.Linear(inputs, width), Swish()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), Swish()]
    return nn.Sequential(*layers, nn.Linear(width, 1), nn.Flatten(0))


def airfoil(n):
    x = torch.rand(n, 4) * 2 - 1
    y = torch.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - 0.5 * x[:, 3]
    return x, y + 0.02 * torch.randn(n)


def run_epoch(model, loader, optimizer, criterion):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    x, y = airfoil(256)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = build(4, 32, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.HuberLoss(delta=0.5)
    for epoch in range(6):
        loss = run_epoch(model, loader, optimizer, criterion)
        print(f"epoch {epoch} loss {loss:.5f}")
    return model


if __name__ == "__main__":
    model = main()
