"""Item vectors from shopping baskets: skip-gram with negative sampling, updated by hand with row-wise AdaGrad."""
import torch
import torch.nn.functional as F

ITEMS, SHELVES, BASKETS, SIZE = 240, 12, 1500, 6
PAD = 0


def make_baskets(generator):
    """Each basket draws most items from one shelf; short baskets are padded with item 0."""
    shelf = torch.randint(0, SHELVES, (BASKETS, 1), generator=generator)
    per_shelf = ITEMS // SHELVES
    rank = (torch.rand(BASKETS, SIZE, generator=generator) ** 2 * per_shelf).long()
    items = 1 + shelf * per_shelf + rank
    stray = 1 + torch.randint(0, ITEMS, items.shape, generator=generator)
    items = torch.where(torch.rand(items.shape, generator=generator) < 0.15, stray, items)
    length = torch.randint(3, SIZE + 1, (BASKETS, 1), generator=generator)
    return items.masked_fill(torch.arange(SIZE) >= length, PAD)


class RowAdagrad:
    """One accumulator per row, as in the embedding tables of large recommenders; touches only the rows of the batch."""

    def __init__(self, table, lr, eps=1e-8):
        self.table, self.lr, self.eps = table, lr, eps
        self.squares = torch.zeros(table.shape[0])

    @torch.no_grad()
    def apply(self, rows, row_grads):
        unique, inverse = torch.unique(rows, return_inverse=True)
        grad = torch.zeros(len(unique), self.table.shape[1]).index_add_(0, inverse, row_grads)
        self.squares[unique] += grad.pow(2).mean(dim=1)
        step = self.lr / (self.squares[unique].sqrt() + self.eps)
        self.table[unique] -= step.unsqueeze(1) * grad


class ItemVectors:
    def __init__(self, width=16, lr=0.15, negatives=5):
        self.centre = torch.empty(ITEMS + 1, width).uniform_(-0.5 / width, 0.5 / width)
        self.context = torch.zeros(ITEMS + 1, width)
        self.centre[PAD] = 0
        self.updates = RowAdagrad(self.centre, lr), RowAdagrad(self.context, lr)
        self.negatives = negatives

    def step(self, centre_ids, context_ids, unigram):
        negative_ids = torch.multinomial(unigram, len(centre_ids) * self.negatives, replacement=True)
        # the rows of this batch are the leaves; the tables themselves stay outside the graph
        v = self.centre[centre_ids].requires_grad_(True)
        u = self.context[context_ids].requires_grad_(True)
        n = self.context[negative_ids].requires_grad_(True)
        attract = F.logsigmoid((v * u).sum(dim=1))
        repel = F.logsigmoid(-(n.view(len(v), self.negatives, -1) @ v.unsqueeze(2)).squeeze(2)).sum(dim=1)
        loss = -(attract + repel).sum()
        grad_v, grad_u, grad_n = torch.autograd.grad(loss, (v, u, n))
        self.updates[0].apply(centre_ids, grad_v)
        self.updates[1].apply(torch.cat([context_ids, negative_ids]), torch.cat([grad_u, grad_n]))
        return loss.item() / len(centre_ids)


def basket_pairs(baskets):
    i, j = torch.where(~torch.eye(SIZE, dtype=torch.bool))
    pairs = torch.stack([baskets[:, i].flatten(), baskets[:, j].flatten()], dim=1)
    return pairs[(pairs != PAD).all(dim=1)]


def shelf_precision(vectors, k=5):
    table = F.normalize(vectors.centre[1:], dim=1)
    similarity = table @ table.T
    similarity.fill_diagonal_(-2.0)
    shelf = torch.arange(ITEMS) // (ITEMS // SHELVES)
    near = similarity.topk(k, dim=1).indices
    return (shelf[near] == shelf.unsqueeze(1)).float().mean().item()


def main(epochs=4, batch=256):
    torch.manual_seed(23)
    baskets = make_baskets(torch.Generator().manual_seed(7))
    pairs = basket_pairs(baskets)
    counts = torch.bincount(pairs[:, 0], minlength=ITEMS + 1).float()
    unigram = counts.pow(0.75)
    unigram[PAD] = 0
    vectors = ItemVectors()
    print(f"{len(pairs)} pairs, shelf precision at start {shelf_precision(vectors):.3f}")
    for epoch in range(epochs):
        order = pairs[torch.randperm(len(pairs))]
        losses = [vectors.step(part[:, 0], part[:, 1], unigram) for part in order.split(batch)]
        print(f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  shelf precision {shelf_precision(vectors):.3f}")
    return vectors


if __name__ == "__main__":
    vectors = main()
