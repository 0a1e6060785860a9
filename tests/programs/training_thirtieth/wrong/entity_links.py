"""Link prediction in a knowledge graph: most entities come with published vectors, newly added ones learn theirs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

N_KNOWN, N_NEW, N_RELATIONS, WIDTH = 160, 40, 6, 16
N_ENTITIES = N_KNOWN + N_NEW
STEPS = 200
BATCH = 128


def make_graph(generator):
    """True vectors and relations; each head is linked to the tails with the best scores."""
    entity = torch.randn(N_ENTITIES, WIDTH, generator=generator)
    relation = torch.randn(N_RELATIONS, WIDTH, generator=generator)
    triples = []
    for r in range(N_RELATIONS):
        scores = (entity * relation[r]) @ entity.T
        scores.fill_diagonal_(-float("inf"))
        tails = scores.topk(4, dim=1).indices
        heads = torch.arange(N_ENTITIES).unsqueeze(1).expand_as(tails)
        triples.append(torch.stack([heads, torch.full_like(heads, r), tails], -1).reshape(-1, 3))
    triples = torch.cat(triples)
    triples = triples[torch.randperm(len(triples), generator=generator)]
    published = entity[:N_KNOWN].clone()
    return triples[:-500], triples[-500:], published


class DistMult(nn.Module):
    def __init__(self, published):
        super().__init__()
        self.entity = nn.Embedding(N_ENTITIES, WIDTH)
        self.relation = nn.Embedding(N_RELATIONS, WIDTH)
        nn.init.normal_(self.entity.weight, std=0.3)
        nn.init.normal_(self.relation.weight, std=0.3)
        with torch.no_grad():
            self.entity.weight[:N_KNOWN] = published
        self.keep_known()

    def keep_known(self):
        """Published vectors are shared with other services and stay as they are; only the new rows are learnt."""
        is_new = torch.zeros(N_ENTITIES, 1)
        is_new[N_KNOWN:] = 1.0
        self.entity.weight.register_hook(lambda grad: grad * is_new)

    def forward(self, head, relation):
        query = self.entity(head) * self.relation(relation)
        return query @ self.entity.weight.T


@torch.no_grad()
def mean_reciprocal_rank(model, triples):
    model.eval()
    head, relation, tail = triples.unbind(1)
    scores = model(head, relation)
    target = scores.gather(1, tail.unsqueeze(1))
    rank = (scores > target).sum(1) + 1
    model.train()
    return (1.0 / rank.float()).mean().item()


def train(model, triples, generator):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=0.1)
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(triples), (BATCH,), generator=generator)
        head, relation, tail = triples[rows].unbind(1)
        loss = F.cross_entropy(model(head, relation), tail, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.3f}  train mrr {mean_reciprocal_rank(model, triples):.3f}")
    return model


def export_vectors(model):
    """The table that the search service loads: id -> vector."""
    return {f"Q{number}": row.clone() for number, row in enumerate(model.entity.weight.detach())}


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(9)
    triples, test, published = make_graph(generator)
    model = DistMult(published)
    print(f"before  test mrr {mean_reciprocal_rank(model, test):.3f}")
    train(model, triples, generator)
    print(f"after   test mrr {mean_reciprocal_rank(model, test):.3f}")
    with_new = test[(test[:, 0] >= N_KNOWN) | (test[:, 2] >= N_KNOWN)]
    print(f"links of new entities  test mrr {mean_reciprocal_rank(model, with_new):.3f}")
    vectors = export_vectors(model)
    print("exported", len(vectors), "vectors")
    return model, published, vectors


if __name__ == "__main__":
    model, published, vectors = main()
