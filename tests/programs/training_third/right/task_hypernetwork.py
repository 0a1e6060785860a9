import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Target(nn.Module):
    def __init__(self, n_in=6, width=12):
        super().__init__()
        self.fc1 = nn.Linear(n_in, width)
        self.fc2 = nn.Linear(width, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x))).squeeze(-1)


class HyperNetwork(nn.Module):
    def __init__(self, template, n_tasks, code=8, width=32):
        super().__init__()
        self.shapes = {n: p.shape for n, p in template.named_parameters()}
        self.fan_in = {n: p.shape[-1] if p.ndim > 1 else 1 for n, p in template.named_parameters()}
        self.codes = nn.Embedding(n_tasks, code)
        self.body = nn.Sequential(nn.Linear(code, width), nn.ReLU())
        self.heads = nn.ModuleDict(
            {n.replace(".", "_"): nn.Linear(width, shape.numel()) for n, shape in self.shapes.items()}
        )

    def forward(self, task):
        h = self.body(self.codes(task))
        made = {}
        for name, shape in self.shapes.items():
            flat = self.heads[name.replace(".", "_")](h)
            made[name] = flat.view(shape) / self.fan_in[name] ** 0.5
        return made


class Runner:
    def __init__(self, n_tasks):
        with torch.device("meta"):
            self.target = Target()
        self.target.requires_grad_(False)
        self.hyper = HyperNetwork(self.target, n_tasks)
        self.optimizer = torch.optim.Adam(self.hyper.parameters(), lr=1e-2)

    def predict(self, task, x):
        return functional_call(self.target, self.hyper(task), (x,))

    def step(self, batch):
        losses = [F.mse_loss(self.predict(task, x), y) for task, x, y in batch]
        loss = torch.stack(losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Tasks:
    def __init__(self, n_tasks, n_in=6):
        self.w = torch.randn(n_tasks, n_in)
        self.n_tasks = n_tasks

    def batch(self, count=4, size=32):
        for task in torch.randperm(self.n_tasks)[:count]:
            x = torch.randn(size, self.w.shape[1])
            yield task, x, torch.sin(x @ self.w[task])


def main(steps=200):
    torch.manual_seed(0)
    tasks = Tasks(6)
    runner = Runner(tasks.n_tasks)
    for step in range(steps):
        loss = runner.step(tasks.batch())
        if step % 50 == 0:
            print(f"step {step} loss {loss:.4f}")
    with torch.no_grad():
        report = [F.mse_loss(runner.predict(t, x), y).item() for t, x, y in tasks.batch(6)]
    print("per task", [round(r, 3) for r in report])
    return runner


if __name__ == "__main__":
    runner = main()
