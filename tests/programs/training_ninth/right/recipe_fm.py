"""Recipe recommendation with a factorisation machine over tag sets; tags that occur rarely share their vectors."""
import torch
import torch.nn.functional as F
from torch import nn

TAGS, RARE_BUCKETS, EMPTY, SET = 400, 24, 0, 10


def build_table(counts, least=90):
    """Row 0 is for empty slots, frequent tags get rows of their own, the others fall into shared buckets."""
    rows = torch.zeros(TAGS + 1, dtype=torch.long)
    frequent = (counts[1:] >= least).nonzero().squeeze(1) + 1
    rows[frequent] = torch.arange(1, len(frequent) + 1)
    rare = torch.tensor([t for t in range(1, TAGS + 1) if counts[t] < least], dtype=torch.long)
    rows[rare] = len(frequent) + 1 + rare * 2654435761 % RARE_BUCKETS
    return rows, len(frequent) + 1 + RARE_BUCKETS


class TagFM(nn.Module):
    def __init__(self, rows, size, dim=16):
        super().__init__()
        self.register_buffer("rows", rows)
        self.vector = nn.Embedding(size, dim, padding_idx=EMPTY, sparse=True)
        self.weight = nn.Embedding(size, 1, padding_idx=EMPTY, sparse=True)
        self.offset = nn.Parameter(torch.zeros(()))
        self.reset()

    def reset(self):
        with torch.no_grad():
            for table, scale in ((self.vector, 0.1), (self.weight, 0.01)):
                table.weight.normal_(0.0, scale)
                table.weight[EMPTY] = 0.0

    def forward(self, tags):
        r = self.rows[tags]
        v = self.vector(r)
        pair = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(1)
        return self.offset + self.weight(r).sum((1, 2)) + pair


def recipes(n, taste, frequency, gen):
    tags = torch.multinomial(frequency.expand(n, -1), SET, generator=gen) + 1
    length = torch.randint(3, SET + 1, (n, 1), generator=gen)
    tags = torch.where(torch.arange(SET)[None] < length, tags, torch.zeros_like(tags))
    vec = torch.cat([torch.zeros(1, taste.shape[1]), taste])[tags]
    score = 0.5 * (vec.sum(1) ** 2 - (vec ** 2).sum(1)).sum(1)
    return tags, score


def train(epochs=10, batch=256):
    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(6)
    frequency = 1.0 / torch.arange(1, TAGS + 1).float() ** 0.9
    taste = 0.5 * torch.randn(TAGS, 4, generator=gen)
    tags, score = recipes(8000, taste, frequency, gen)
    cut = score.median()
    liked = torch.bernoulli(torch.sigmoid(2 * (score - cut)), generator=gen)
    rows, size = build_table(torch.bincount(tags[:6000].flatten(), minlength=TAGS + 1))
    model = TagFM(rows, size)
    tables = [model.vector.weight, model.weight.weight]
    sparse_opt = torch.optim.SparseAdam(tables, lr=1e-2)
    dense_opt = torch.optim.SGD([model.offset], lr=0.05)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(6000, generator=gen).split(batch):
            loss = F.binary_cross_entropy_with_logits(model(tags[idx]), liked[idx])
            sparse_opt.zero_grad()
            dense_opt.zero_grad()
            loss.backward()
            sparse_opt.step()
            dense_opt.step()
            total += loss.item() * len(idx) / 6000
        if epoch == epochs // 2:
            for opt in (sparse_opt, dense_opt):
                for group in opt.param_groups:
                    group["lr"] *= 0.2
        if epoch % 2 == 0:
            print(f"{epoch:3d}  loss {total:.4f}")
    with torch.no_grad():
        guess = model(tags[6000:])
    pos, neg = guess[liked[6000:] > 0.5], guess[liked[6000:] <= 0.5]
    auc = (pos[:, None] > neg[None]).float().mean().item()
    return model, auc


if __name__ == "__main__":
    model, auc = train()
    print(f"rows {model.vector.num_embeddings}  held-out AUC {auc:.3f}")
