"""Prune small weights, then keep training."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def prune_layer(layer, fraction):
    weight = layer.weight.detach()
    cut = weight.abs().flatten().quantile(fraction)
    mask = (weight.abs() > cut).float()
    weight.mul_(mask)
    return 1.0 - mask.mean().item()


class Session:
    def __init__(self, model, lr=0.05):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def epoch(self, batches):
        total = 0.0
        for x, y in batches:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(batches)


def main():
    torch.manual_seed(43)
    x = torch.randn(48, 8)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    batches = list(zip(x.split(16), y.split(16)))
    session = Session(Net())
    for _ in range(3):
        session.epoch(batches)
    for layer in (session.model.fc1, session.model.fc2):
        print("sparsity", round(prune_layer(layer, 0.5), 2))
    for epoch in range(3):
        print(epoch, session.epoch(batches))


if __name__ == "__main__":
    main()
