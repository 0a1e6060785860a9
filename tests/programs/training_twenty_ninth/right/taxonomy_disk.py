"""Poincare embeddings (Nickel and Kiela 2017) of a taxonomy, trained with Riemannian SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BRANCH = 3
DEPTH = 4
DIM = 5
NEGATIVES = 10
EPOCHS = 60
BURN_IN = 8
RIM = 1e-5


def make_taxonomy():
    """All (descendant, ancestor) pairs of a full tree."""
    parent = [-1]
    level = [0]
    for _ in range(DEPTH - 1):
        children = []
        for node in level:
            for _ in range(BRANCH):
                children.append(len(parent))
                parent.append(node)
        level = children
    pairs = []
    for node in range(len(parent)):
        above = parent[node]
        while above >= 0:
            pairs.append((node, above))
            above = parent[above]
    return len(parent), torch.tensor(pairs)


def poincare_distance(u, v):
    squared = (u - v).pow(2).sum(-1)
    scale = (1 - u.pow(2).sum(-1)) * (1 - v.pow(2).sum(-1))
    return torch.acosh(1 + 2 * squared / scale + 1e-12)


class PoincareEmbedding(nn.Module):
    def __init__(self, count, dim):
        super().__init__()
        self.table = nn.Embedding(count, dim, dtype=torch.float64)
        self.table.weight.data.uniform_(-1e-3, 1e-3)

    def forward(self, node, others):
        return poincare_distance(self.table(node)[:, None], self.table(others))


class RiemannianSGD:
    """Scales the Euclidean gradient by the inverse metric of the ball and draws points back into the ball."""

    def __init__(self, params, lr):
        self.params = list(params)
        self.lr = lr

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.params:
            inverse_metric = (1 - p.pow(2).sum(-1, keepdim=True)).pow(2) / 4
            p.grad.mul_(inverse_metric)
            p.sub_(p.grad, alpha=self.lr)
            norm = p.norm(dim=-1, keepdim=True)
            p.copy_(torch.where(norm >= 1 - RIM, p / norm * (1 - RIM), p))


def draw_negatives(pairs, related):
    """For each pair: nodes that are not related to the descendant."""
    strangers = (~related[pairs[:, 0]]).double()
    return torch.multinomial(strangers, NEGATIVES, replacement=True)


@torch.no_grad()
def mean_rank(model, pairs, related):
    everyone = torch.arange(len(related))
    distance = model(pairs[:, 0], everyone.expand(len(pairs), -1))
    own = distance.gather(1, pairs[:, 1:])
    closer = (distance < own) & ~related[pairs[:, 0]]
    return closer.sum(1).double().mean().item() + 1


def main():
    torch.manual_seed(14)
    count, pairs = make_taxonomy()
    related = torch.eye(count, dtype=torch.bool)
    related[pairs[:, 0], pairs[:, 1]] = True
    model = PoincareEmbedding(count, DIM)
    optimizer = RiemannianSGD(model.parameters(), lr=0.0)
    for epoch in range(EPOCHS):
        optimizer.lr = 0.3 if epoch < BURN_IN else 3.0
        for part in torch.randperm(len(pairs)).split(32):
            chosen = pairs[part]
            others = torch.cat([chosen[:, 1:], draw_negatives(chosen, related)], dim=1)
            logits = -model(chosen[:, 0], others)
            loss = F.cross_entropy(logits, torch.zeros(len(chosen), dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 15 == 14:
            print(f"epoch {epoch + 1:3d}  loss {loss.item():.4f}  mean rank {mean_rank(model, pairs, related):.2f}")
    norms = model.table.weight.data.norm(dim=-1)
    print(f"distance of the root from the middle {norms[0]:.3f}, of the leaves {norms[-BRANCH ** (DEPTH - 1):].mean():.3f}")
    return model, pairs, related


if __name__ == "__main__":
    model, pairs, related = main()
