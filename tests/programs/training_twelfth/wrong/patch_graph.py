"""Two-phase node classification on a stochastic block graph.

Phase 1 fits the classifier on top of a pretrained (denoising) encoder,
phase 2 fine-tunes everything, under one cosine schedule with warm-up.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)

N, BLOCKS, FEATS = 400, 5, 24
PRETRAIN, HEAD_STEPS, TOTAL = 80, 60, 300
PEAK_LR = 0.05


def block_graph():
    y = torch.randint(0, BLOCKS, (N,))
    same = y[:, None] == y[None, :]
    prob = torch.where(same, 0.06, 0.02)
    adj = (torch.rand(N, N) < prob).float().triu(1)
    adj = adj + adj.T + torch.eye(N)
    scale = adj.sum(1).rsqrt()
    adj = scale[:, None] * adj * scale[None, :]
    centers = torch.randn(BLOCKS, FEATS)
    x = 0.45 * centers[y] + torch.randn(N, FEATS)
    order = torch.randperm(N)
    return adj, x, y, order[:100], order[100:]


class Encoder(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lin1 = nn.Linear(FEATS, hidden)
        self.lin2 = nn.Linear(hidden, hidden)

    def forward(self, adj, x):
        h = F.relu(adj @ self.lin1(x))
        h = F.dropout(h, 0.5, self.training)
        return F.relu(adj @ self.lin2(h))


def lr_factor(step, warmup=20):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (TOTAL - warmup)))


def pretrain(encoder, adj, x):
    decoder = nn.Linear(48, FEATS)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
    for _ in range(PRETRAIN):
        noisy = x * (torch.rand_like(x) > 0.3)
        loss = F.mse_loss(decoder(encoder(adj, noisy)), adj @ x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(encoder, head, adj, x, y, idx):
    encoder.eval()
    acc = (head(encoder(adj, x)).argmax(1)[idx] == y[idx]).float().mean().item()
    encoder.train()
    return acc


def main():
    adj, x, y, train_idx, test_idx = block_graph()
    encoder, head = Encoder(), nn.Linear(48, BLOCKS)
    print(f"pretrain mse {pretrain(encoder, adj, x):.4f}")

    for p in encoder.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=PEAK_LR, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)
    history = []
    for step in range(TOTAL):
        if step == HEAD_STEPS:
            for p in encoder.parameters():
                p.requires_grad_(True)
            optimizer = torch.optim.SGD(
                [*encoder.parameters(), *head.parameters()],
                lr=PEAK_LR, momentum=0.9, weight_decay=5e-4,
            )
        logits = head(encoder(adj, x))
        loss = F.cross_entropy(logits[train_idx], y[train_idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        acc = accuracy(encoder, head, adj, x, y, test_idx)
        history.append((loss.item(), acc))
        if step % 50 == 49:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  test acc {acc:.3f}  "
                  f"lr {scheduler.get_last_lr()[0]:.4f}")
    tail = torch.tensor(history[-40:])
    print(f"last 40 steps: loss {tail[:, 0].mean():.3f} +- {tail[:, 0].std():.3f}  "
          f"acc {tail[:, 1].mean():.3f} +- {tail[:, 1].std():.3f}")
    return optimizer, scheduler, tail


if __name__ == "__main__":
    optimizer, scheduler, tail = main()
