"""Fine-tuning with discriminative gradient scaling per stage, done by hooks on the parameters."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALES = {"embed": 0.01, "stage1": 0.05, "stage2": 0.2, "head": 1.0}


class StagedNet(nn.Module):
    def __init__(self, in_dim=30, dim=48, classes=5):
        super().__init__()
        self.embed = nn.Linear(in_dim, dim)
        self.stage1 = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.LayerNorm(dim))
        self.stage2 = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.LayerNorm(dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        h = F.relu(self.embed(x))
        h = self.stage1(h)
        h = self.stage2(h)
        return self.head(h)


def install_gradient_scaling(model, scales):
    handles = []
    for name, scale in scales.items():
        for p in getattr(model, name).parameters():
            handles.append(p.register_hook(lambda grad: grad * scale))
    return handles


def make_domain(n, prototypes, rotation=None, noise=1.0):
    y = torch.randint(0, prototypes.size(0), (n,))
    x = prototypes[y] + noise * torch.randn(n, prototypes.size(1))
    return (x if rotation is None else x @ rotation), y


def fit(model, x, y, optimizer, epochs, batch=64):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(x.size(0)).split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * idx.numel()
    return total / x.size(0)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrain-epochs", type=int, default=8)
    parser.add_argument("--finetune-epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.manual_seed(15)
    prototypes = torch.randn(5, 30)
    rotation = torch.linalg.qr(torch.eye(30) + 0.1 * torch.randn(30, 30)).Q
    x_src, y_src = make_domain(2000, prototypes)
    x_tgt, y_tgt = make_domain(80, prototypes, rotation)
    x_test, y_test = make_domain(1000, prototypes, rotation)

    model = StagedNet()
    fit(model, x_src, y_src, torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9), args.pretrain_epochs)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    print(f"before fine-tuning {accuracy(model, x_test, y_test):.3f}")

    model.head.reset_parameters()
    handles = install_gradient_scaling(model, SCALES)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    final = fit(model, x_tgt, y_tgt, optimizer, args.finetune_epochs, batch=16)
    for handle in handles:
        handle.remove()
    for name in ("embed.weight", "stage1.0.weight", "stage2.0.weight"):
        change = (model.state_dict()[name] - before[name]).norm() / before[name].norm()
        print(f"{name} relative change {change:.4f}")
    print(f"after fine-tuning loss {final:.3f} accuracy {accuracy(model, x_test, y_test):.3f}")
    return model, before


if __name__ == "__main__":
    model, before = main()
