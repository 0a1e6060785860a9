"""Dual-encoder retrieval with in-batch negatives and a batch larger than what fits through the encoders at once."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class TextTower(nn.Module):
    def __init__(self, vocab, dim, out):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, out))

    def forward(self, tokens):
        return F.normalize(self.net(self.embed(tokens)), dim=-1)


class DualEncoder(nn.Module):
    def __init__(self, vocab=300, dim=48, out=32):
        super().__init__()
        self.query = TextTower(vocab, dim, out)
        self.title = TextTower(vocab, dim, out)
        self.log_scale = nn.Parameter(torch.tensor(2.3))


def contrastive_loss(zq, zt, log_scale):
    logits = log_scale.exp() * zq @ zt.t()
    labels = torch.arange(len(zq))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


def encode_chunks(tower, tokens, chunk):
    with torch.no_grad():
        return torch.cat([tower(t) for t in tokens.split(chunk)])


def push_back(tower, tokens, cached, chunk):
    """Run the tower once more per chunk and hand it the stored derivative of the loss."""
    for t, g in zip(tokens.split(chunk), cached.split(chunk)):
        surrogate = (tower(t) * g).sum()
        surrogate.backward()


def train_step(model, opt, queries, titles, chunk):
    opt.zero_grad()
    zq = encode_chunks(model.query, queries, chunk).requires_grad_()
    zt = encode_chunks(model.title, titles, chunk).requires_grad_()
    loss = contrastive_loss(zq, zt, model.log_scale)
    loss.backward()
    push_back(model.query, queries, zq.grad, chunk)
    push_back(model.title, titles, zt.grad, chunk)
    opt.step()
    with torch.no_grad():
        model.log_scale.clamp_(max=4.6)
    return loss.item()


def make_pairs(n, gen, vocab=300, topics=40):
    """Query and title of one book share a topic and a few rare words; both use their own filler words."""
    words = torch.randint(60, vocab, (topics, 12), generator=torch.Generator().manual_seed(8))
    topic = torch.randint(0, topics, (n,), generator=gen)
    pick = torch.randint(0, 12, (n, 10), generator=gen)
    own = words[topic].gather(1, pick)
    rare = torch.randint(60, vocab, (n, 2), generator=gen)
    filler_q = torch.randint(0, 30, (n, 3), generator=gen)
    filler_t = torch.randint(30, 60, (n, 3), generator=gen)
    return torch.cat([own[:, :5], rare, filler_q], 1), torch.cat([own[:, 5:], rare, filler_t], 1)


@torch.no_grad()
def recall_at(model, queries, titles, k=10):
    scores = model.query(queries) @ model.title(titles).t()
    hits = scores.topk(k, dim=1).indices == torch.arange(len(queries)).unsqueeze(1)
    return hits.any(dim=1).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--chunk", type=int, default=64)
    p.add_argument("--lr", type=float, default=5e-3)
    args = p.parse_args()

    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    model = DualEncoder()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    valid = make_pairs(400, torch.Generator().manual_seed(2))
    print(f"step   0  recall@10 {recall_at(model, *valid):.3f}")
    for step in range(1, args.steps + 1):
        loss = train_step(model, opt, *make_pairs(args.batch, gen), args.chunk)
        if step % 50 == 0:
            print(f"step {step:3d}  loss {loss:.3f}  recall@10 {recall_at(model, *valid):.3f}")
    return model


if __name__ == "__main__":
    main()
