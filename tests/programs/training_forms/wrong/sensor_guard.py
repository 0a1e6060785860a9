import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(13)


class Guard:
    def __init__(self, limit):
        self.limit, self.count = limit, 0

    def __call__(self, params):
        grads = [p.grad for p in params]
        size = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        if size > self.limit:
            torch._foreach_zero_(grads)
            self.count += 1
            return False
        return True


class Trainer:
    def __init__(self, net, guard):
        self.net, self.guard = net, guard
        self.params = list(net.parameters())
        self.opt = torch.optim.SGD(self.params, lr=0.02, momentum=0.9, weight_decay=1e-3)

    def update(self, x, y):
        loss = F.mse_loss(self.net(x).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.guard(self.params)
        self.opt.step()
        return loss.item()


def readings(n):
    x = torch.rand(n, 6) * 2 - 1
    y = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2]
    if torch.rand(()) < 0.25:
        y = y + 40 * (torch.rand(n) < 0.2)
    return x, y


net = nn.Sequential(nn.Linear(6, 40), nn.GELU(), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 1))
trainer = Trainer(net, Guard(8.0))
losses = []
for step in range(1, 161):
    losses.append(trainer.update(*readings(64)))
    if step % 40 == 0:
        middle = torch.tensor(losses[-40:]).median().item()
        print(f"step {step} median loss {middle:.4f} outliers {trainer.guard.count}")
print(f"weights {sum(p.norm() for p in trainer.params).item():.4f}")
