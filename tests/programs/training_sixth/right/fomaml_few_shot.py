"""First-order MAML for few-shot classification with functional parameters."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Classifier(nn.Module):
    def __init__(self, dim, hidden, ways):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, ways)

    def forward(self, x):
        return self.head(self.body(x))


class TaskSampler:
    def __init__(self, dim, ways, basis):
        self.dim, self.ways, self.basis = dim, ways, basis

    def __call__(self, shots, queries):
        code = torch.randn(self.ways, self.basis.size(0))
        prototypes = code @ self.basis

        def draw(k):
            y = torch.arange(self.ways).repeat_interleave(k)
            return prototypes[y] + 1.5 * torch.randn(y.numel(), self.dim), y

        return draw(shots), draw(queries)


def adapt(model, support, lr, steps):
    x, y = support
    params = dict(model.named_parameters())
    fast = dict(params)
    for _ in range(steps):
        loss = F.cross_entropy(functional_call(model, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()))
        fast = {k: p - lr * g for (k, p), g in zip(fast.items(), grads)}
    return fast


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--meta-batch", type=int, default=4)
    parser.add_argument("--inner-lr", type=float, default=0.1)
    parser.add_argument("--inner-steps", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(6)
    sampler = TaskSampler(20, 4, torch.randn(4, 20))
    model = Classifier(20, 40, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for it in range(args.iterations):
        optimizer.zero_grad()
        correct = count = 0
        for _ in range(args.meta_batch):
            support, (xq, yq) = sampler(5, 10)
            fast = adapt(model, support, args.inner_lr, args.inner_steps)
            logits = functional_call(model, fast, (xq,))
            (F.cross_entropy(logits, yq) / args.meta_batch).backward()
            correct += (logits.argmax(1) == yq).sum().item()
            count += yq.numel()
        optimizer.step()
        history.append(correct / count)
        if it % 50 == 49:
            print(f"it {it} query accuracy {sum(history[-50:]) / 50:.3f}")


if __name__ == "__main__":
    main()
