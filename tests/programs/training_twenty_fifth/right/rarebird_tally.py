"""Long-tailed bird-call classification: train for balanced accuracy although some species are very rare."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

SPECIES = 8
DIM = 16


def make_calls(counts, gen, centres):
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    x = centres[y] + torch.randn(len(y), DIM, generator=gen)
    order = torch.randperm(len(y), generator=gen)
    return x[order], y[order]


class CallNet(nn.Module):
    def __init__(self, prior, tau):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, SPECIES))
        self.register_buffer("shift", tau * prior.log())

    def forward(self, x):
        logits = self.net(x)
        if self.training:
            logits = logits + self.shift
        return logits


@torch.no_grad()
def per_class_recall(model, x, y):
    model.eval()
    pred = model(x).argmax(dim=1)
    return torch.stack([(pred[y == c] == c).float().mean() for c in range(SPECIES)])


def train(model, x, y, x_val, y_val, args):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    steps = args.epochs * -(-len(x) // args.batch)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=args.lr, total_steps=steps)
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for idx in torch.randperm(len(x)).split(args.batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item() * len(idx)
        if epoch % 4 == 3:
            recall = per_class_recall(model, x_val, y_val)
            print(f"epoch {epoch + 1:2d}  loss {running / len(x):.3f}  balanced acc {recall.mean():.3f}  "
                  f"rarest {recall[-1]:.3f}")
    return model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=16)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--tau", type=float, default=1.0)
    ap.add_argument("--seed", type=int, default=6)
    args = ap.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    centres = 0.75 * torch.randn(SPECIES, DIM, generator=gen)
    counts = [int(1200 * 0.55 ** k) for k in range(SPECIES)]
    x, y = make_calls(counts, gen, centres)
    x_val, y_val = make_calls([200] * SPECIES, gen, centres)

    prior = torch.bincount(y, minlength=SPECIES) / len(y)
    model = train(CallNet(prior, args.tau), x, y, x_val, y_val, args)
    recall = per_class_recall(model, x_val, y_val)
    print("recall per species:", " ".join(f"{r:.2f}" for r in recall.tolist()))
    return model, recall


if __name__ == "__main__":
    model, recall = main()
    print(f"balanced accuracy {recall.mean():.3f}")
