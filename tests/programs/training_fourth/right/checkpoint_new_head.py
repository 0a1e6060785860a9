"""Reuse a checkpoint for another set of classes: the old head is dropped on purpose, all else must match."""
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
anchors = 1.5 * torch.randn(12, 5)
lift = torch.randn(5, 20)


def samples(n, classes):
    label = torch.randint(0, len(classes), (n,))
    z = anchors[torch.tensor(classes)[label]] + 0.5 * torch.randn(n, 5)
    return torch.tanh(z @ lift) + 0.2 * torch.randn(n, 20), label


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.trunk(x))


def train(model, groups, x, y, epochs):
    optimizer = torch.optim.Adam(groups)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def evaluate(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "source.pt"
    source = Net(8)
    x, y = samples(1600, list(range(8)))
    loss = train(source, [{"params": source.parameters(), "lr": 3e-3}], x, y, 6)
    torch.save({"state": source.state_dict(), "loss": loss}, path)
    state = torch.load(path, weights_only=True)["state"]

target = Net(4)
state = {k: v for k, v in state.items() if not k.startswith("head.")}
result = target.load_state_dict(state, strict=False)
assert result.unexpected_keys == [] and sorted(result.missing_keys) == ["head.bias", "head.weight"]
assert all(torch.equal(a, b) for a, b in zip(target.trunk.parameters(), source.trunk.parameters()))

x, y = samples(40, [8, 9, 10, 11])
test_x, test_y = samples(800, [8, 9, 10, 11])
groups = [{"params": target.trunk.parameters(), "lr": 1e-3}, {"params": target.head.parameters(), "lr": 1e-2}]
train(target, groups, x, y, 25)
scratch = Net(4)
train(scratch, [{"params": scratch.parameters(), "lr": 3e-3}], x, y, 25)
print(f"from checkpoint {evaluate(target, test_x, test_y):.3f}, from scratch {evaluate(scratch, test_x, test_y):.3f}")
