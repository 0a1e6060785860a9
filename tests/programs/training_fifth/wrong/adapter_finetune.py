"""Parameter-efficient fine-tuning: a pretrained classifier gets LoRA adapters for a new, related task."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

DIM, CLASSES = 20, 5
means = 0.8 * torch.randn(CLASSES, DIM)
rotation = torch.linalg.qr(torch.eye(DIM) + 0.35 * torch.randn(DIM, DIM))[0]


def sensors(n, shifted):
    labels = torch.randint(CLASSES, (n,))
    x = means[labels] + torch.randn(n, DIM)
    return (x @ rotation if shifted else x), labels


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.weight = nn.Parameter(base.weight.detach().clone(), requires_grad=False)
        self.bias = nn.Parameter(base.bias.detach().clone(), requires_grad=False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        self.scale = alpha / rank
        self.merged = False

    def delta(self):
        return self.scale * (self.lora_b @ self.lora_a)

    def train(self, mode=True):
        super().train(mode)
        if mode:
            self.merged = False  # back to the separate adapter
        elif not self.merged:
            self.weight.data += self.delta().detach()
            self.merged = True  # one matrix product less at inference
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if not self.merged:
            out = out + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)
        return out


def fit(model, x, y, epochs, lr, report=None):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        for index in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if report:
            report(epoch, loss.item())


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def with_adapters(model):
    return nn.Sequential(*(LoRALinear(m) if isinstance(m, nn.Linear) else m for m in model))


def main():
    base = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    fit(base, *sensors(1500, shifted=False), epochs=8, lr=3e-3)
    print(f"pretrained: old task {accuracy(base, *sensors(1000, False)):.3f}, new task {accuracy(base, *sensors(1000, True)):.3f}")
    model = with_adapters(base)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{trainable} of {sum(p.numel() for p in model.parameters())} weights are trained")
    validation = sensors(1000, True)
    history = []

    def report(epoch, loss):
        history.append(accuracy(model, *validation))
        if epoch % 4 == 3:
            print(f"epoch {epoch:2d}  loss {loss:.3f}  validation accuracy {history[-1]:.3f}")

    fit(model, *sensors(400, shifted=True), epochs=20, lr=4e-3, report=report)
    return base, model, history


if __name__ == "__main__":
    main()
