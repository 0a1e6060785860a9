"""Adds product words to a ticket router.

The word table of the base vocabulary comes from the search team, whose index is built on the same vectors: those rows
stay as delivered, and only the rows of the product words and the layers of the router are trained.
"""
import torch
from torch import nn
from torch.nn import functional as F

BASE_WORDS = 80
PRODUCT_WORDS = 16
SIZE = 20
QUEUES = 4


def delivered_table():
    """Vectors of the base vocabulary, grouped by subject."""
    generator = torch.Generator().manual_seed(2)
    subjects = torch.randn(8, SIZE, generator=generator)
    members = torch.randint(8, (BASE_WORDS,), generator=generator)
    return subjects[members] + 0.4 * torch.randn(BASE_WORDS, SIZE, generator=generator)


class Tickets:
    """A ticket is ten words; its queue is decided mostly by the product words in it."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(4)
        self.product_queue = torch.randint(QUEUES, (PRODUCT_WORDS,), generator=layout)

    def batch(self, count):
        words = torch.randint(BASE_WORDS, (count, 10), generator=self.generator)
        queue = torch.randint(QUEUES, (count,), generator=self.generator)
        for row in range(count):
            options = (self.product_queue == queue[row]).nonzero().flatten()
            picks = options[torch.randint(len(options), (2,), generator=self.generator)]
            words[row, :2] = BASE_WORDS + picks
        return words, queue


class WordTable(nn.Module):
    """Delivered rows followed by new rows, in one table."""

    def __init__(self, delivered, extra):
        super().__init__()
        rows = torch.cat([delivered, 0.1 * torch.randn(extra, delivered.shape[1])])
        self.table = nn.Embedding.from_pretrained(rows, freeze=False)
        trained_rows = torch.zeros(len(rows), 1)
        trained_rows[len(delivered):] = 1.0
        self.register_buffer("trained_rows", trained_rows)
        self.table.weight.register_hook(self.keep_delivered)

    def keep_delivered(self, grad):
        return grad * self.trained_rows

    def forward(self, words):
        return self.table(words)


class Router(nn.Module):
    def __init__(self, words, width=32):
        super().__init__()
        self.words = words
        self.hidden = nn.Linear(SIZE, width)
        self.drop = nn.Dropout(0.1)
        self.queue = nn.Linear(width, QUEUES)

    def forward(self, words):
        pooled = self.words(words).mean(dim=1)
        return self.queue(self.drop(F.relu(self.hidden(pooled))))


@torch.no_grad()
def routed_right(router, tickets, count=200):
    router.eval()
    words, queue = tickets.batch(count)
    share = (router(words).argmax(dim=1) == queue).float().mean().item()
    router.train()
    return share


def main():
    torch.manual_seed(8)
    router = Router(WordTable(delivered_table(), PRODUCT_WORDS))
    optimizer = torch.optim.AdamW(router.parameters(), lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200, eta_min=1e-3)
    tickets, held_out = Tickets(seed=12), Tickets(seed=13)
    losses = []
    for step in range(1, 201):
        words, queue = tickets.batch(32)
        loss = F.cross_entropy(router(words), queue)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(router.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4d}  loss {sum(losses[-50:]) / 50:.4f}  routed right {routed_right(router, held_out):.3f}")
    return router, optimizer


if __name__ == "__main__":
    router, optimizer = main()
