"""Shop recommender: BPR matrix factorisation whose catalogue grows while it is being trained."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(3)

N_USERS, N_OLD, N_NEW, RANK = 120, 60, 30, 12


def make_interactions():
    users = torch.randn(N_USERS, 4)
    items = torch.randn(N_OLD + N_NEW, 4)
    affinity = users @ items.T + 0.5 * torch.randn(N_USERS, N_OLD + N_NEW)
    liked = affinity > affinity.quantile(0.75, dim=1, keepdim=True)
    held_out = liked & (torch.rand_like(affinity) < 0.3)
    return liked, held_out


class BPR(nn.Module):
    def __init__(self, n_users, n_items, rank):
        super().__init__()
        self.users = nn.Embedding(n_users, rank)
        self.items = nn.Embedding(n_items, rank)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)

    def add_items(self, n):
        old = self.items
        self.items = nn.Embedding(old.num_embeddings + n, old.embedding_dim)
        with torch.no_grad():
            self.items.weight[: old.num_embeddings] = old.weight
            self.items.weight[old.num_embeddings:].normal_(std=0.1)

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1)


def sample_triples(train, n_items, size):
    pairs = train[:, :n_items].nonzero()
    pick = pairs[torch.randint(len(pairs), (size,))]
    u, pos = pick[:, 0], pick[:, 1]
    neg = torch.randint(n_items, (size,))
    keep = ~train[u, neg]
    return u[keep], pos[keep], neg[keep]


@torch.no_grad()
def auc(model, liked, held_out, columns):
    scores = model.users.weight @ model.items.weight.T
    total, count = 0.0, 0
    for u in range(N_USERS):
        pos = [c for c in columns if held_out[u, c]]
        neg = [c for c in columns if not liked[u, c]]
        if pos and neg:
            total += (scores[u, pos][:, None] > scores[u, neg][None]).float().mean().item()
            count += 1
    return total / count


def main():
    liked, held_out = make_interactions()
    train = liked & ~held_out
    model = BPR(N_USERS, N_OLD, RANK)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-4)
    n_items = N_OLD
    for epoch in range(16):
        if epoch == 6:
            model.add_items(N_NEW)
            n_items += N_NEW
            print(f"epoch {epoch}: catalogue grown to {n_items} items")
        running = 0.0
        for _ in range(16):
            u, pos, neg = sample_triples(train, n_items, 512)
            loss = -F.logsigmoid(model(u, pos) - model(u, neg)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch:2d}  bpr loss {running / 16:.4f}")
    old_auc = auc(model, liked, held_out, range(N_OLD))
    new_auc = auc(model, liked, held_out, range(N_OLD, N_OLD + N_NEW))
    print(f"held-out AUC: old items {old_auc:.3f}, new arrivals {new_auc:.3f}")


main()
