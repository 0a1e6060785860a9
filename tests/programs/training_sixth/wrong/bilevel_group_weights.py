"""Bilevel optimisation: per-group sample weights learned through one step of the inner model."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GroupWeights(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(groups))

    def forward(self, group):
        return torch.softmax(self.logits, dim=0)[group] * self.logits.numel()


class Classifier(nn.Module):
    def __init__(self, dim, hidden=32, classes=2):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def make_groups(n, w, noise_rates):
    x = torch.randn(n, w.numel())
    y = (x @ w > 0).long()
    group = torch.randint(0, len(noise_rates), (n,))
    flip = torch.rand(n) < torch.tensor(noise_rates)[group]
    return x, torch.where(flip, 1 - y, y), group


class BilevelTrainer:
    def __init__(self, model, weights, inner_lr=0.1, outer_lr=0.05):
        self.model = model
        self.weights = weights
        self.lookahead = Classifier(model.fc1.in_features)
        self.inner_lr = inner_lr
        self.opt_model = torch.optim.SGD(model.parameters(), lr=inner_lr, momentum=0.9)
        self.opt_weights = torch.optim.Adam(weights.parameters(), lr=outer_lr)

    def weighted_loss(self, x, y, group):
        losses = F.cross_entropy(self.model(x), y, reduction="none")
        return (self.weights(group) * losses).mean()

    def outer_step(self, train_batch, val_batch):
        params = dict(self.model.named_parameters())
        inner_loss = self.weighted_loss(*train_batch)
        grads = torch.autograd.grad(inner_loss, tuple(params.values()), create_graph=True)
        updated = {k: p - self.inner_lr * g for (k, p), g in zip(params.items(), grads)}
        self.lookahead.load_state_dict(updated)
        x_val, y_val = val_batch
        val_loss = F.cross_entropy(self.lookahead(x_val), y_val)
        self.opt_weights.zero_grad()
        val_loss.backward()
        self.opt_weights.step()
        return val_loss.item()

    def inner_step(self, x, y, group):
        with torch.no_grad():
            weight = self.weights(group)
        loss = (weight * F.cross_entropy(self.model(x), y, reduction="none")).mean()
        self.opt_model.zero_grad()
        loss.backward()
        self.opt_model.step()
        return loss.item()


torch.manual_seed(12)
w_true = torch.randn(10)
noise_rates = [0.0, 0.1, 0.5, 0.9]
x, y, group = make_groups(2000, w_true, noise_rates)
x_val, y_val, _ = make_groups(200, w_true, [0.0])
x_test, y_test, _ = make_groups(1000, w_true, [0.0])

trainer = BilevelTrainer(Classifier(10), GroupWeights(len(noise_rates)))
for step in range(250):
    idx = torch.randint(0, x.size(0), (128,))
    batch = (x[idx], y[idx], group[idx])
    val_loss = trainer.outer_step(batch, (x_val, y_val))
    train_loss = trainer.inner_step(*batch)
    if step % 50 == 0:
        print(f"step {step} inner loss {train_loss:.3f} validation loss {val_loss:.3f}")

with torch.no_grad():
    accuracy = (trainer.model(x_test).argmax(1) == y_test).float().mean().item()
print("group weights", torch.softmax(trainer.weights.logits, 0).tolist(), f"test accuracy {accuracy:.3f}")
