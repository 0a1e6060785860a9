import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(14)


def sample_task():
    amp = torch.rand(1) * 2 + 0.5
    phase = torch.rand(1) * 3.14

    def draw(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amp * torch.sin(x + phase)
    return draw


class MetaLearner:
    def __init__(self, net, inner_lr=0.01, inner_steps=3, meta_lr=1e-3):
        self.net = net
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.opt = torch.optim.Adam(net.parameters(), lr=meta_lr)

    def error(self, weights, x, y):
        return nn.functional.mse_loss(functional_call(self.net, weights, (x,)), y)

    def adapt(self, x, y):
        fast = {name: p.clone() for name, p in self.net.named_parameters()}
        for _ in range(self.inner_steps):
            grads = torch.autograd.grad(self.error(fast, x, y), list(fast.values()))
            for (name, w), g in zip(fast.items(), grads):
                w.data.add_(g, alpha=-self.inner_lr)
        return fast

    def meta_step(self, tasks, shots=10):
        self.opt.zero_grad()
        total = 0.0
        for draw in tasks:
            fast = self.adapt(*draw(shots))
            query = self.error(fast, *draw(shots)) / len(tasks)
            query.backward()
            total += query.item()
        self.opt.step()
        return total


net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
learner = MetaLearner(net)
for it in range(100):
    loss = learner.meta_step([sample_task() for _ in range(4)])
    if it % 20 == 19:
        print(f"iteration {it + 1} query loss {loss:.4f}")
print("weight norm", sum(p.norm().item() for p in net.parameters()))
