import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class TaskContext:
    def __init__(self):
        self.gate = None


class GatedAdapterBlock(nn.Module):
    def __init__(self, dim, rank, ctx):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim, bias=False)
        self.ctx = ctx
        nn.init.normal_(self.up.weight, std=0.02)

    def forward(self, h):
        low = self.down(h) * self.ctx.gate
        return h + torch.tanh(self.proj(h) + self.up(low))


class MultiTaskRegressor(nn.Module):
    def __init__(self, in_dim, dim, rank, n_tasks, depth):
        super().__init__()
        self.ctx = TaskContext()
        self.stem = nn.Linear(in_dim, dim)
        self.task_embed = nn.Embedding(n_tasks, 8)
        self.gate_net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, rank), nn.Sigmoid())
        self.blocks = nn.ModuleList([GatedAdapterBlock(dim, rank, self.ctx) for _ in range(depth)])
        self.out = nn.Linear(dim, 1)

    def forward(self, x, task):
        self.ctx.gate = self.gate_net(self.task_embed(task))
        h = self.stem(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=True)
        return self.out(h).squeeze(-1)


def adapter_parameters(model):
    for name, p in model.named_parameters():
        if ".proj." in name:
            p.requires_grad_(False)
        else:
            yield p


def sample(n, in_dim, n_tasks, gen):
    x = torch.randn(n, in_dim, generator=gen)
    task = torch.randint(0, n_tasks, (n,), generator=gen)
    y = x[torch.arange(n), task] + 0.5 * x.mean(1)
    return x, task, y


def train(steps=60):
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(11)
    model = MultiTaskRegressor(6, 20, 5, 4, 3)
    opt = torch.optim.Adam(list(adapter_parameters(model)), lr=5e-3)
    for step in range(steps):
        x, task, y = sample(128, 6, 4, gen)
        loss = F.mse_loss(model(x, task), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    train()
