"""Two-tower retrieval with a large in-batch softmax on little memory: embeddings of the whole batch are made chunk by chunk
without a graph, the loss is differentiated with respect to them, and the chunks are then encoded again to pass it on."""
import torch
from torch import nn
from torch.nn import functional as F

N_USERS, N_ITEMS, DIM, BATCH, CHUNK, STEPS = 600, 300, 24, 192, 48, 90
TEMPERATURE = 0.1


class Tower(nn.Module):
    def __init__(self, n_ids, n_features):
        super().__init__()
        self.ids = nn.Embedding(n_ids, DIM)
        self.features = nn.Linear(n_features, DIM)
        self.mlp = nn.Sequential(nn.LayerNorm(2 * DIM), nn.Linear(2 * DIM, 64), nn.GELU(), nn.Linear(64, DIM))

    def forward(self, ids, features):
        x = torch.cat([self.ids(ids), self.features(features)], dim=1)
        return F.normalize(self.mlp(x), dim=1)


def make_interactions(generator):
    taste = torch.randn(N_USERS, 6, generator=generator)
    content = torch.randn(N_ITEMS, 6, generator=generator)
    user_features = taste @ torch.randn(6, 10, generator=generator) + 0.5 * torch.randn(N_USERS, 10, generator=generator)
    item_features = content @ torch.randn(6, 10, generator=generator) + 0.5 * torch.randn(N_ITEMS, 10, generator=generator)
    affinity = torch.softmax(1.5 * taste @ content.T, dim=1)
    users = torch.arange(N_USERS).repeat_interleave(12)
    items = torch.multinomial(affinity, 12, replacement=True, generator=generator).flatten()
    return users, items, user_features, item_features


def encode(tower, ids, features):
    with torch.no_grad():
        parts = [tower(i, features[i]) for i in ids.split(CHUNK)]
    return torch.cat(parts)


def contrastive(user_vectors, item_vectors, items):
    logits = user_vectors @ item_vectors.T / TEMPERATURE
    same = items.unsqueeze(0) == items.unsqueeze(1)
    same.fill_diagonal_(False)
    logits = logits.masked_fill(same, float("-inf"))
    return F.cross_entropy(logits, torch.arange(len(items)))


def push(tower, ids, features, grads):
    for i, grad in zip(ids.split(CHUNK), grads.split(CHUNK)):
        surrogate = (tower(i, features[i]) * grad).sum()
        surrogate.backward()


def train_step(users, items):
    u = encode(user_tower, users, user_features).requires_grad_()
    v = encode(item_tower, items, item_features).requires_grad_()
    loss = contrastive(u, v, items)
    u_grad, v_grad = torch.autograd.grad(loss, (u, v))
    optimizer.zero_grad()
    push(user_tower, users, user_features, u_grad)
    push(item_tower, items, item_features, v_grad)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def recall(users, items, k=20):
    u = encode(user_tower, users, user_features)
    v = encode(item_tower, torch.arange(N_ITEMS), item_features)
    return ((u @ v.T).topk(k, dim=1).indices == items.unsqueeze(1)).any(1).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(11)
    users, items, user_features, item_features = make_interactions(generator)
    order = torch.randperm(len(users), generator=generator)
    held_out, kept = order[:1000], order[1000:]
    user_tower, item_tower = Tower(N_USERS, 10), Tower(N_ITEMS, 10)
    optimizer = torch.optim.AdamW([*user_tower.parameters(), *item_tower.parameters()], lr=3e-3, weight_decay=0.01)
    print(f"start   recall@20 {recall(users[held_out], items[held_out]):.3f}")
    for step in range(STEPS):
        rows = kept[torch.randint(len(kept), (BATCH,), generator=generator)]
        loss = train_step(users[rows], items[rows])
        if step % 30 == 29:
            print(f"step {step + 1:3d}  loss {loss:.3f}  recall@20 {recall(users[held_out], items[held_out]):.3f}")
