"""Two-view training with weights that become sparser over time."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SparseLinear(nn.Linear):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out)
        self.register_buffer("mask", torch.ones(n_out, n_in))
        self.calls = 0

    def update_mask(self):
        self.calls += 1
        keep = max(0.4, 1.0 - 0.15 * self.calls)
        magnitude = self.weight.detach().abs()
        threshold = magnitude.flatten().kthvalue(int((1 - keep) * magnitude.numel()) + 1).values
        self.mask = (magnitude >= threshold).float()

    def forward(self, x):
        if self.training:
            self.update_mask()
        return F.linear(x, self.weight * self.mask, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = SparseLinear(12, 32)
        self.layer2 = SparseLinear(32, 16)
        self.layer3 = SparseLinear(16, 8)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def agreement(a, b):
    return 1 - F.cosine_similarity(a, b, dim=1).mean()


def main():
    torch.manual_seed(40)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(3):
        x = torch.randn(16, 12)
        first = net(x + 0.1 * torch.randn_like(x))
        second = net(x + 0.1 * torch.randn_like(x))
        loss = agreement(first, second) + 0.01 * (first.pow(2).mean() - 1).pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
