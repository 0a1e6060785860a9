"""Fine-tuning a pretrained sequence encoder with gradual unfreezing, distilling from the pretrained teacher's logits."""
import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Plan:
    epochs: int = 9
    unfreeze_every: int = 2
    head_lr: float = 4e-3
    layer_lr: float = 2e-3
    layer_decay: float = 0.7
    temperature: float = 2.0
    alpha: float = 0.5


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        nn.init.zeros_(self.outer.weight)

    def forward(self, h):
        return h + self.outer(F.gelu(self.inner(self.norm(h))))


class Classifier(nn.Module):
    def __init__(self, d_in, classes, dim=32, depth=3):
        super().__init__()
        self.stem = nn.Linear(d_in, dim)
        self.layers = nn.ModuleList(Residual(dim) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        h = self.stem(x)
        for layer in self.layers:
            h = layer(h)
        return self.head(h)


def domain(n, shift, gen, centers):
    y = torch.randint(0, len(centers), (n,), generator=gen)
    x = centers[y] * torch.where(torch.rand(n, 1, generator=gen) < 0.5, 1.0, -0.7)
    return torch.roll(x, shift, 1) + 0.7 * torch.randn(x.shape, generator=gen), y


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def pretrain(model, x, y, gen):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        idx = torch.randint(0, len(x), (64,), generator=gen)
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()


def distillation_loss(student, teacher, t):
    return F.kl_div(F.log_softmax(student / t, -1), F.log_softmax(teacher / t, -1),
                    reduction="batchmean", log_target=True) * t * t


def finetune(teacher, x, y, x_old, plan, gen):
    student = copy.deepcopy(teacher)
    teacher.eval().requires_grad_(False)
    student.requires_grad_(False)
    student.head.requires_grad_(True)
    opt = torch.optim.AdamW(student.head.parameters(), lr=plan.head_lr)
    waiting = [student.stem, *student.layers]
    soft = teacher(x_old)
    for epoch in range(plan.epochs):
        if epoch and epoch % plan.unfreeze_every == 0 and waiting:
            depth, module = len(opt.param_groups), waiting.pop()
            module.requires_grad_(True)
            opt.add_param_group({"params": module.parameters(), "lr": plan.layer_lr * plan.layer_decay ** (depth - 1)})
        for idx in torch.randperm(len(x), generator=gen).split(32):
            keep = torch.randint(0, len(x_old), (32,), generator=gen)
            hard = F.cross_entropy(student(x[idx]), y[idx])
            loss = hard + plan.alpha * distillation_loss(student(x_old[keep]), soft[keep], plan.temperature)
            opt.zero_grad()
            loss.backward()
            opt.step()
        yield student, epoch, loss.item()


def main(plan):
    torch.manual_seed(61)
    gen = torch.Generator().manual_seed(62)
    centers = 1.2 * torch.randn(6, 16, generator=gen)
    (x0, y0), (x1, y1) = domain(3000, 0, gen, centers), domain(600, 1, gen, centers)
    (v0, w0), (v1, w1) = domain(800, 0, gen, centers), domain(800, 1, gen, centers)
    teacher = Classifier(16, 6)
    pretrain(teacher, x0, y0, gen)
    print(f"teacher: source {accuracy(teacher, v0, w0):.3f} target {accuracy(teacher, v1, w1):.3f}")
    for student, epoch, loss in finetune(teacher, x1, y1, x0, plan, gen):
        trainable = sum(p.numel() for p in student.parameters() if p.requires_grad)
        print(f"epoch {epoch + 1} trainable {trainable} loss {loss:.3f} "
              f"source {accuracy(student, v0, w0):.3f} target {accuracy(student, v1, w1):.3f}")


if __name__ == "__main__":
    main(Plan())
