import torch
import torch.nn as nn
import torch.nn.functional as F


class SceneNet(nn.Module):
    def __init__(self, n_in=16, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict(
            {"depth": nn.Linear(width, 1), "normals": nn.Linear(width, 3), "mask": nn.Linear(width, 1)}
        )

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def task_losses(out, target):
    return {
        "depth": F.l1_loss(out["depth"], target["depth"]),
        "normals": 1 - F.cosine_similarity(out["normals"], target["normals"], dim=-1).mean(),
        "mask": F.binary_cross_entropy_with_logits(out["mask"], target["mask"]),
    }


class GradientSurgery:
    def __init__(self, optimizer, shared):
        self.optimizer = optimizer
        self.shared = list(shared)

    def collect(self, losses):
        grads = []
        for loss in losses:
            for p in self.shared:
                if p.grad is not None:
                    p.grad.zero_()
            loss.backward(retain_graph=True)
            grads.append([p.grad for p in self.shared])
        return grads

    def project(self, grads):
        merged = [torch.zeros_like(p) for p in self.shared]
        for i, mine in enumerate(grads):
            mine = [g.clone() for g in mine]
            for j, other in enumerate(grads):
                dot = sum((a * b).sum() for a, b in zip(mine, other))
                if i != j and dot < 0:
                    scale = dot / sum(b.pow(2).sum() for b in other)
                    mine = [a - scale * b for a, b in zip(mine, other)]
            merged = [m + g for m, g in zip(merged, mine)]
        return merged

    def step(self, losses):
        self.optimizer.zero_grad()
        merged = self.project(self.collect(list(losses.values())))
        for p, g in zip(self.shared, merged):
            p.grad = g
        self.optimizer.step()


def make_scene(n=256, n_in=16):
    x = torch.randn(n, n_in)
    w = torch.randn(n_in, 5) / n_in ** 0.5
    y = torch.tanh(x @ w)
    return x, {"depth": 2 + y[:, :1], "normals": F.normalize(y[:, 1:4], dim=-1), "mask": (y[:, 4:] > 0).float()}


def main(steps=60):
    torch.manual_seed(0)
    x, target = make_scene()
    model = SceneNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    surgery = GradientSurgery(optimizer, model.trunk.parameters())
    for step in range(steps):
        idx = torch.randint(0, len(x), (64,))
        losses = task_losses(model(x[idx]), {k: v[idx] for k, v in target.items()})
        surgery.step(losses)
        if step % 20 == 0:
            print(step, {k: round(v.item(), 4) for k, v in losses.items()})
    return model, surgery, (x, target)


if __name__ == "__main__":
    model, surgery, data = main()
