"""Gradual magnitude pruning of a classifier: train dense, prune in three rounds, fine-tune after each, store sparse."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
FEATURES, CLASSES = 40, 8


class Classifier(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Pruner:
    """Holds one mask per weight matrix and keeps the gradient of pruned entries at zero."""

    def __init__(self, model):
        self.weights = {n: p for n, p in model.named_parameters() if n.endswith("weight")}
        self.masks = {n: torch.ones_like(p) for n, p in self.weights.items()}
        for name, weight in self.weights.items():
            weight.register_hook(self.mask_gradient(name))

    def mask_gradient(self, name):
        def hook(grad):
            return grad * self.masks[name]

        return hook

    @torch.no_grad()
    def prune_to(self, sparsity):
        for name, weight in self.weights.items():
            score = weight.abs() * self.masks[name]
            threshold = score.flatten().kthvalue(int(sparsity * score.numel())).values
            self.masks[name] = (score > threshold).float()
            weight.mul_(self.masks[name])

    def sparsity(self):
        total = sum(m.numel() for m in self.masks.values())
        return 1 - sum(m.sum().item() for m in self.masks.values()) / total


def sparse_state(model, pruner):
    state = {}
    for name, p in model.state_dict().items():
        state[name] = p.to_sparse_coo() if name in pruner.masks else p.clone()
    return state


def make_data(count, centres):
    labels = torch.randint(0, CLASSES, (count,))
    which = torch.randint(0, centres.size(1), (count,))
    return centres[labels, which] + 0.8 * torch.randn(count, FEATURES), labels


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def fit(model, optimizer, x, y, epochs):
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
    return loss.item()


centres = torch.randn(CLASSES, 4, FEATURES) * 0.6
train_x, train_y = make_data(2048, centres)
test_x, test_y = make_data(2048, centres)
model = Classifier()
pruner = Pruner(model)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
fit(model, optimizer, train_x, train_y, epochs=4)
print(f"dense accuracy {accuracy(model, test_x, test_y):.3f}")
for target in (0.6, 0.8, 0.9):
    pruner.prune_to(target)
    loss = fit(model, optimizer, train_x, train_y, epochs=2)
    print(f"sparsity {pruner.sparsity():.2f} loss {loss:.3f} accuracy {accuracy(model, test_x, test_y):.3f}")
stored = sparse_state(model, pruner)
print(f"stored {len(stored)} tensors, {sum(t.is_sparse for t in stored.values())} of them sparse")
