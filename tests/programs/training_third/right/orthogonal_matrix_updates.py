import torch
import torch.nn as nn
import torch.nn.functional as F


def orthogonalise(g, iterations=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(iterations):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if tall else x


class MatrixMomentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.9, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = torch.zeros_like(p)
                state["buffer"].mul_(group["momentum"]).add_(p.grad)
                direction = orthogonalise(p.grad.add(state["buffer"], alpha=group["momentum"]))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(direction, alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


class Ranker(nn.Module):
    def __init__(self, items=40, dim=24):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.hidden = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2))
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, items)

    def forward(self, history):
        h = self.items(history).mean(dim=1)
        for layer in self.hidden:
            h = h + F.relu(layer(h))
        return self.score(self.norm(h))


def split_parameters(model):
    matrices = [p for n, p in model.named_parameters() if n.startswith("hidden") and p.ndim == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    assert len(matrices) + len(others) == len(list(model.parameters()))
    return matrices, others


def make_batch(size=64, items=40):
    group = torch.randint(0, 5, (size, 1))
    history = group * 8 + torch.randint(0, 8, (size, 5))
    return history, (group.squeeze(1) * 8 + history[:, 0] % 4)


def main(steps=80):
    torch.manual_seed(0)
    model = Ranker()
    matrices, others = split_parameters(model)
    optimizers = [MatrixMomentum(matrices, weight_decay=0.01), torch.optim.AdamW(others, lr=5e-3)]
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, steps) for o in optimizers]
    for step in range(steps):
        history, label = make_batch()
        loss = F.cross_entropy(model(history), label)
        model.zero_grad()
        loss.backward()
        for optimizer, schedule in zip(optimizers, schedules):
            optimizer.step()
            schedule.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return model


if __name__ == "__main__":
    model = main()
