"""Learning to rank on four ranks simulated in one process. Each rank holds a replica and queries of its own; gradients are
summed over ranks and normalised by the global number of documents, and each rank's optimizer keeps the state of a part of
the parameters only, whose new values it then hands to the others."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

RANKS, QUERIES_PER_RANK, MAX_DOCS, FEATURES, STEPS = 4, 12, 15, 16, 110


def make_queries(n, generator):
    """Ragged lists of documents with graded relevance; mask is true where there is a document."""
    docs = torch.randn(n, MAX_DOCS, FEATURES, generator=generator)
    count = torch.randint(5, MAX_DOCS + 1, (n, 1), generator=generator)
    mask = torch.arange(MAX_DOCS) < count
    quality = docs[..., 0] * docs[..., 1] + docs[..., 2] - docs[..., 3].abs() + torch.sin(2 * docs[..., 4])
    quality = quality + 0.3 * torch.randn(n, MAX_DOCS, generator=generator)
    grades = torch.bucketize(quality, torch.tensor([-1.0, 0.5, 1.5, 2.5])).float()
    return docs, grades * mask, mask


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.score = nn.Linear(64, 1, bias=False)

    def forward(self, docs):
        return self.score(self.body(docs)).squeeze(-1)


def listwise_sum(scores, grades, mask):
    """Sum over queries of their document count times the cross entropy between relevance and score distributions."""
    log_p = F.log_softmax(scores.masked_fill(~mask, -1e9), dim=1)
    target = torch.softmax(grades.masked_fill(~mask, -1e9), dim=1)
    per_query = -(target * log_p).sum(dim=1)
    return (per_query * mask.sum(dim=1)).sum()


class Rank:
    def __init__(self, index, model, data):
        self.model = copy.deepcopy(model)
        self.data = data
        self.params = list(self.model.parameters())
        self.owned = range(index, len(self.params), RANKS)
        self.optimizer = torch.optim.AdamW([self.params[i] for i in self.owned], lr=3e-3, weight_decay=1e-3)
        self.generator = torch.Generator().manual_seed(500 + index)

    def backward(self):
        docs, grades, mask = self.data
        rows = torch.randint(len(docs), (QUERIES_PER_RANK,), generator=self.generator)
        loss = listwise_sum(self.model(docs[rows]), grades[rows], mask[rows])
        self.model.zero_grad()
        loss.backward()
        return loss.item(), mask[rows].sum().item()


@torch.no_grad()
def reduce_gradients(ranks, n_docs):
    for group in zip(*(rank.params for rank in ranks)):
        total = torch.stack([p.grad for p in group]).sum(dim=0) / n_docs
        for p in group:
            p.grad = total


@torch.no_grad()
def broadcast_owned(ranks):
    for owner in ranks:
        for i in owner.owned:
            for other in ranks:
                if other is not owner:
                    other.params[i].copy_(owner.params[i])


@torch.no_grad()
def ndcg(model, data):
    docs, grades, mask = data
    discount = 1 / torch.log2(torch.arange(MAX_DOCS) + 2.0)
    gain = (2.0**grades - 1) * mask
    order = model(docs).masked_fill(~mask, float("-inf")).argsort(dim=1, descending=True)
    ideal = (gain.sort(dim=1, descending=True).values * discount).sum(1)
    reached = (gain.gather(1, order) * discount).sum(1)
    return (reached / ideal.clamp(min=1e-9))[ideal > 0].mean().item()


if __name__ == "__main__":
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(41)
    model = Ranker()
    ranks = [Rank(r, model, make_queries(400, generator)) for r in range(RANKS)]
    val = make_queries(600, generator)
    print(f"start     ndcg {ndcg(ranks[0].model, val):.4f}")
    for step in range(STEPS):
        sums, counts = zip(*[rank.backward() for rank in ranks])
        reduce_gradients(ranks, sum(counts))
        for rank in ranks:
            rank.optimizer.step()
        broadcast_owned(ranks)
        if step % 22 == 21:
            print(f"step {step + 1:3d}  loss {sum(sums) / sum(counts):.4f}  ndcg {ndcg(ranks[0].model, val):.4f}")
    vectors = torch.stack([nn.utils.parameters_to_vector(rank.params).detach() for rank in ranks])
    print(f"largest difference between replicas {(vectors - vectors[0]).abs().max().item():.1e}")
