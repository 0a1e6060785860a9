import copy

import torch
from torch import nn
import torch.nn.functional as F

WAYS, SHOTS, QUERY, FEATURES = 4, 3, 8, 16
INNER_STEPS, TASKS = 4, 6


class TaskSource:
    """Few-shot tasks: only a hidden 4-dimensional subspace of the 16 inputs tells the classes apart."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        basis = torch.randn(FEATURES, FEATURES, generator=torch.Generator().manual_seed(99))
        self.rotation = torch.linalg.qr(basis)[0]

    def sample(self):
        def draw(*shape):
            return torch.randn(*shape, generator=self.generator)

        centres = 1.6 * draw(WAYS, 4)
        labels = torch.arange(WAYS).repeat(SHOTS + QUERY)
        informative = centres[labels] + 0.5 * draw(len(labels), 4)
        x = torch.cat([informative, 1.6 * draw(len(labels), FEATURES - 4)], dim=1) @ self.rotation
        cut = WAYS * SHOTS
        return (x[:cut], labels[:cut]), (x[cut:], labels[cut:])


class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Sequential(
            nn.Linear(FEATURES, width), nn.LayerNorm(width), nn.ReLU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(),
        )
        self.head = nn.Linear(width, WAYS)

    def forward(self, x):
        return self.head(self.embed(x))


def adapt(model, support, inner_lr):
    """Fine-tunes a copy; LayerNorm parameters of the copy stay as they were learned by the outer loop."""
    learner = copy.deepcopy(model)
    learner.zero_grad(set_to_none=True)
    frozen = {id(p) for m in learner.modules() if isinstance(m, nn.LayerNorm) for p in m.parameters()}
    moving = [p for p in learner.parameters() if id(p) not in frozen]
    optimizer = torch.optim.SGD(moving, lr=inner_lr)
    x, y = support
    for _ in range(INNER_STEPS):
        loss = F.cross_entropy(learner(x), y)
        for p, g in zip(moving, torch.autograd.grad(loss, moving)):
            p.grad = g
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return learner


def meta_step(model, optimizer, source, inner_lr):
    """First-order MAML: the query gradient at the adapted copy is the gradient of the initial weights."""
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    total = 0.0
    for _ in range(TASKS):
        support, (x, y) = source.sample()
        learner = adapt(model, support, inner_lr)
        loss = F.cross_entropy(learner(x), y) / TASKS
        loss.backward()
        with torch.no_grad():
            for p, q in zip(model.parameters(), learner.parameters()):
                p.grad.add_(q.grad)
            model.head.weight.grad.sub_(model.head.weight.grad.mean(0, keepdim=True))
            model.head.bias.grad.zero_()
        total += loss.item()
    optimizer.step()
    return total


def evaluate(model, source, inner_lr, count=60):
    correct = []
    for _ in range(count):
        support, (x, y) = source.sample()
        learner = adapt(model, support, inner_lr)
        with torch.inference_mode():
            correct.append((learner(x).argmax(1) == y).float().mean())
    return torch.stack(correct).mean().item()


torch.manual_seed(0)
model = Classifier()
nn.init.zeros_(model.head.weight)
nn.init.zeros_(model.head.bias)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
before = evaluate(model, TaskSource(7), 0.3)
source = TaskSource(1)
losses = [meta_step(model, optimizer, source, 0.3) for _ in range(150)]
after = evaluate(model, TaskSource(7), 0.3)
print(f"query loss {sum(losses[:20]) / 20:.3f} -> {sum(losses[-20:]) / 20:.3f}")
print(f"accuracy on new tasks {before:.3f} -> {after:.3f}")
