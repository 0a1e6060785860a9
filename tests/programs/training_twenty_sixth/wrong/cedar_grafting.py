"""Fine-tune a source-domain network on a small target set, holding the weights near the source solution (L2-SP)."""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, n_in=20, width=64, n_classes=4):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.block1 = nn.Linear(width, width)
        self.block2 = nn.Linear(width, width)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.block1(x))
        x = F.relu(self.block2(x))
        return self.head(x)


def make_domain(n, teacher, shift, gen):
    x = torch.randn(n, 20, generator=gen) + shift
    with torch.no_grad():
        y = teacher(x - 0.5 * shift).argmax(dim=1)
    return x, y


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def pretrain(model, x, y, steps, lr, gen):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        idx = torch.randint(0, len(x), (128,), generator=gen)
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def finetune(source_model, x, y, args, gen):
    model = copy.deepcopy(source_model)
    for p in model.stem.parameters():
        p.requires_grad_(False)

    params = filter(lambda p: p.requires_grad, model.parameters())
    anchors = [p.detach().clone() for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9)

    model.train()
    for step in range(1, args.steps + 1):
        idx = torch.randint(0, len(x), (args.batch_size,), generator=gen)
        task_loss = F.cross_entropy(model(x[idx]), y[idx])
        # pull every trainable tensor towards its pretrained value
        penalty = sum(((p - a) ** 2).sum() for p, a in zip(params, anchors))
        loss = task_loss + 0.5 * args.alpha * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"  finetune step {step}: loss {loss.item():.4f}")
    return model, anchors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alpha", type=float, default=0.3, help="strength of the L2-SP term")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=21)
    args = parser.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    teacher = nn.Sequential(nn.Linear(20, 12), nn.Tanh(), nn.Linear(12, 4))
    shift = 0.5 * torch.randn(20, generator=gen)
    source = make_domain(4000, teacher, torch.zeros(20), gen)
    target_train = make_domain(40, teacher, shift, gen)
    target_test = make_domain(2000, teacher, shift, gen)

    source_model = pretrain(Net(), *source, steps=600, lr=2e-3, gen=gen)
    print(f"source model on target: {accuracy(source_model, *target_test):.3f}")
    model, anchors = finetune(source_model, *target_train, args, gen)
    target_acc, source_acc = accuracy(model, *target_test), accuracy(model, *source)
    print(f"after fine-tuning: target {target_acc:.3f}  source {source_acc:.3f}")
    return model, anchors, target_acc, source_acc


if __name__ == "__main__":
    model, anchors, target_acc, source_acc = main()
