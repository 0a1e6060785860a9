"""Freeze the layers of a network one after the other from below."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(14, 32), nn.Linear(32, 32), nn.Linear(32, 32)])
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.head(x)


def data(n, w):
    x = torch.randn(n, 14)
    return x, (torch.tanh(x) @ w).argmax(dim=1)


def main():
    torch.manual_seed(34)
    w = torch.randn(14, 4)
    x, y = data(512, w)
    x_val, y_val = data(256, w)
    model = Stack()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    freeze_at = {3: 0, 6: 1, 9: 2}
    for epoch in range(12):
        if epoch in freeze_at:
            model.layers[freeze_at[epoch]].requires_grad_(False)
            opt.zero_grad(set_to_none=True)
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        print(f"epoch {epoch}: loss {total / len(x):.4f} val acc {acc:.3f} trainable {trainable}")


if __name__ == "__main__":
    main()
