"""Two-tower retrieval of places for travellers, with a contrastive batch larger than what fits in memory at once.

The towers see a big batch in small chunks: a first sweep only computes the vectors, the loss gives the gradient
for each vector, and a second sweep sends these gradients through the towers.
"""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def make_pairs(n, users_dim, items_dim, gen):
    taste = torch.randn(n, 8, generator=gen)
    to_user = torch.randn(8, users_dim, generator=torch.Generator().manual_seed(1))
    to_item = torch.randn(8, items_dim, generator=torch.Generator().manual_seed(2))
    users = torch.tanh(taste @ to_user) + 0.4 * torch.randn(n, users_dim, generator=gen)
    items = torch.tanh(taste @ to_item) + 0.4 * torch.randn(n, items_dim, generator=gen)
    return users, items


class Tower(nn.Module):
    def __init__(self, n_in, n_out=24, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, n_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class TwoTower(nn.Module):
    def __init__(self, users_dim, items_dim):
        super().__init__()
        self.user = Tower(users_dim)
        self.item = Tower(items_dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, u, v):
        scores = self.log_scale.exp() * u @ v.t()
        target = torch.arange(len(u))
        return 0.5 * (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target))


@torch.no_grad()
def embed_chunks(tower, x, chunk):
    return torch.cat([tower(part) for part in x.split(chunk)])


def push_back(tower, x, grad, chunk):
    for part, g in zip(x.split(chunk), grad.split(chunk)):
        tower(part).backward(g)


def big_batch_backward(model, users, items, chunk):
    u = embed_chunks(model.user, users, chunk).requires_grad_()
    v = embed_chunks(model.item, items, chunk).requires_grad_()
    loss = model.loss(u, v)
    loss.backward()
    push_back(model.user, users, u.grad, chunk)
    push_back(model.item, items, v.grad, chunk)
    return loss.item()


@torch.no_grad()
def recall_at_10(model, users, items):
    scores = model.user(users) @ model.item(items).t()
    top = scores.topk(10, dim=1).indices
    return (top == torch.arange(len(users))[:, None]).any(dim=1).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args([])

    torch.set_num_threads(1)
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    users, items = make_pairs(4096, 20, 30, gen)
    held_users, held_items = make_pairs(500, 20, 30, gen)
    model = TwoTower(20, 30)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    print(f"recall@10 before: {recall_at_10(model, held_users, held_items):.3f}")
    for epoch in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(users)).split(args.batch_size):
            optimizer.zero_grad()
            total += big_batch_backward(model, users[idx], items[idx], args.chunk) * len(idx)
            optimizer.step()
        recall = recall_at_10(model, held_users, held_items)
        print(f"epoch {epoch + 1}: loss {total / len(users):.4f}  recall@10 {recall:.3f}")
    return model, users, items, recall


if __name__ == "__main__":
    model, users, items, recall = main()
