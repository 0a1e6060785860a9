import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Regressor(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.l1 = nn.Linear(1, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, 1)

    def forward(self, x):
        return self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x)))))


class SineTasks:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)

    def draw(self, shots):
        amp = 0.5 + 2.0 * torch.rand(1, generator=self.gen)
        phase = 3.14 * torch.rand(1, generator=self.gen)
        x = 10 * torch.rand(2 * shots, 1, generator=self.gen) - 5
        y = amp * torch.sin(x + phase)
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


class FirstOrderMAML:
    def __init__(self, model, inner_lr=0.02, inner_steps=3, meta_lr=3e-3):
        self.model = model
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.opt = torch.optim.Adam(model.parameters(), lr=meta_lr)

    def adapt(self, support):
        x, y = support
        weights = dict(self.model.named_parameters())
        for _ in range(self.inner_steps):
            loss = F.mse_loss(functional_call(self.model, weights, (x,)), y)
            grads = torch.autograd.grad(loss, list(self.model.parameters()))
            weights = {
                name: (w - self.inner_lr * g).detach().requires_grad_()
                for (name, w), g in zip(weights.items(), grads)
            }
        return weights

    def meta_step(self, tasks):
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)
        total = 0.0
        for support, query in tasks:
            fast = self.adapt(support)
            x, y = query
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            grads = torch.autograd.grad(loss, list(fast.values()))
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / len(tasks)
            total += loss.item() / len(tasks)
        self.opt.step()
        return total


def main():
    torch.manual_seed(0)
    tasks = SineTasks(21)
    recent = []
    learner = FirstOrderMAML(Regressor())
    for it in range(120):
        batch = [tasks.draw(10) for _ in range(4)]
        loss = learner.meta_step(batch)
        recent.append(loss)
        if it % 20 == 19:
            print(f"meta step {it} loss {sum(recent[-20:]) / 20:.4f}")


if __name__ == "__main__":
    main()
