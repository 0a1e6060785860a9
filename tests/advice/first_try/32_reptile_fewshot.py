import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self, n_in=8, width=32, ways=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, ways)

    def forward(self, x):
        return self.head(self.body(x))


class TaskSampler:
    def __init__(self, n_classes=12, dim=8, seed=3):
        self.gen = torch.Generator().manual_seed(seed)
        self.centers = torch.randn(n_classes, dim, generator=self.gen)

    def task(self, ways=3, shots=8):
        classes = torch.randperm(len(self.centers), generator=self.gen)[:ways].sort().values
        y = torch.arange(ways).repeat_interleave(shots)
        noise = 0.5 * torch.randn(ways * shots, self.centers.shape[1], generator=self.gen)
        return self.centers[classes][y] + noise, y


class Reptile:
    def __init__(self, model, inner_lr=0.1, outer_lr=0.3, inner_steps=5):
        self.model = model
        self.inner_lr = inner_lr
        self.outer_lr = outer_lr
        self.inner_steps = inner_steps

    def snapshot(self):
        return self.model.state_dict()

    def inner_loop(self, x, y):
        opt = torch.optim.SGD(self.model.parameters(), lr=self.inner_lr)
        first = None
        for _ in range(self.inner_steps):
            loss = F.cross_entropy(self.model(x), y)
            if first is None:
                first = loss.item()
            opt.zero_grad()
            loss.backward()
            opt.step()
        return first, loss.item()

    def outer_step(self, x, y):
        start = self.snapshot()
        first, last = self.inner_loop(x, y)
        end = self.snapshot()
        merged = {k: start[k] + self.outer_lr * (end[k] - start[k]) for k in start}
        self.model.load_state_dict(merged)
        return first, last


def main():
    torch.manual_seed(10)
    sampler = TaskSampler()
    learner = Reptile(Embedder())
    history = []
    for it in range(60):
        x, y = sampler.task()
        history.append(learner.outer_step(x, y))
        if it % 10 == 9:
            pre = sum(h[0] for h in history[-10:]) / 10
            post = sum(h[1] for h in history[-10:]) / 10
            print(f"outer {it} pre {pre:.4f} loss {post:.4f}")


if __name__ == "__main__":
    main()
