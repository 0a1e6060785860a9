"""Gradual magnitude pruning of a loan-default classifier: train dense, prune in stages, fine-tune after each stage."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)

FIELDS = 20
STAGES = (0.5, 0.75, 0.9)


def make_loans(size, weights):
    x = torch.randn(size, FIELDS)
    score = x @ weights + 0.8 * x[:, 0] * x[:, 1] - 0.6 * x[:, 2].abs()
    y = (score + 0.3 * torch.randn(size) > 0).float()
    return x, y


class DefaultNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.first = nn.Linear(FIELDS, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.last(F.relu(self.second(F.relu(self.first(x))))).squeeze(1)


class MagnitudePruner:
    """Keeps one binary mask for each weight matrix, chosen by magnitude over the whole network."""

    def __init__(self, net):
        self.weights = [p for p in net.parameters() if p.dim() > 1]
        self.masks = [torch.ones_like(p) for p in self.weights]

    @torch.no_grad()
    def prune_to(self, share):
        scores = torch.cat([(p.abs() * m).flatten() for p, m in zip(self.weights, self.masks)])
        threshold = scores.kthvalue(int(share * scores.numel())).values
        for p, m in zip(self.weights, self.masks):
            m.mul_((p.abs() > threshold).float())
            p.mul_(m)

    def mask_gradients(self):
        for p, m in zip(self.weights, self.masks):
            p.grad.mul_(m)

    def kept(self):
        return int(sum(m.sum().item() for m in self.masks))

    def total(self):
        return sum(m.numel() for m in self.masks)


class Trainer:
    def __init__(self, net, lr=3e-3, batch=64):
        self.net = net
        self.batch = batch
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)

    def fit(self, x, y, epochs, pruner=None):
        self.net.train()
        for _ in range(epochs):
            total = 0.0
            for index in torch.randperm(len(x)).split(self.batch):
                self.optimizer.zero_grad()
                loss = F.binary_cross_entropy_with_logits(self.net(x[index]), y[index])
                loss.backward()
                if pruner is not None:
                    pruner.mask_gradients()
                self.optimizer.step()
                total += loss.item() * len(index)
        return total / len(x)


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return ((net(x) > 0).float() == y).float().mean().item()


def main():
    weights = torch.randn(FIELDS) * 0.5
    x, y = make_loans(1200, weights)
    x_test, y_test = make_loans(800, weights)

    net = DefaultNet()
    trainer = Trainer(net)
    loss = trainer.fit(x, y, epochs=10)
    print(f"dense: loss {loss:.3f}, test accuracy {accuracy(net, x_test, y_test):.3f}")

    pruner = MagnitudePruner(net)
    for share in STAGES:
        pruner.prune_to(share)
        before = accuracy(net, x_test, y_test)
        loss = trainer.fit(x, y, epochs=6, pruner=pruner)
        after = accuracy(net, x_test, y_test)
        print(f"pruned to {share:.0%}: kept {pruner.kept()} of {pruner.total()}, "
              f"accuracy {before:.3f} -> {after:.3f}, loss {loss:.3f}")

    size = 4 * (pruner.kept() + sum(p.numel() for p in net.parameters() if p.dim() == 1))
    print(f"size of the values to store: {size / 1024:.1f} KiB")
    return net, pruner, trainer


if __name__ == "__main__":
    net, pruner, trainer = main()
