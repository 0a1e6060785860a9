"""Routes support tickets to four queues with a table of delivered word vectors.

The vectors of the known words come from the company's search index.  The product names are
not in it, so their vectors are learned here, together with the classifier.  The finished table
goes back to the index, where known words have to keep the vectors they came with.
"""
import torch
import torch.nn.functional as F
from torch import nn

KNOWN, PRODUCTS, DIM, QUEUES = 240, 24, 16, 4
TOKENS = 14
STEPS, BATCH = 220, 64


def delivered_vectors(generator):
    topic = torch.randint(0, QUEUES, (KNOWN,), generator=generator)
    centers = torch.randn(QUEUES, DIM, generator=generator)
    vectors = centers[topic] + 0.8 * torch.randn(KNOWN, DIM, generator=generator)
    return F.normalize(vectors, dim=1), topic


def make_tickets(n, word_queue, product_queue, generator):
    queue = torch.randint(0, QUEUES, (n,), generator=generator)
    tokens = torch.randint(0, KNOWN, (n, TOKENS), generator=generator)
    for i in range(n):
        own_words = (word_queue == queue[i]).nonzero().squeeze(1)
        own_products = (product_queue == queue[i]).nonzero().squeeze(1) + KNOWN
        tokens[i, 0] = own_words[torch.randint(0, len(own_words), (1,), generator=generator)]
        tokens[i, 1] = own_products[torch.randint(0, len(own_products), (1,), generator=generator)]
    return tokens, queue


class TicketRouter(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.table = nn.Embedding(KNOWN + PRODUCTS, DIM)
        with torch.no_grad():
            self.table.weight[:KNOWN] = vectors
            self.table.weight[KNOWN:].normal_(0, 0.05)
        self.hidden = nn.Linear(DIM, 32)
        self.queues = nn.Linear(32, QUEUES)

    def forward(self, tokens):
        pooled = self.table(tokens).mean(dim=1)
        return self.queues(torch.relu(self.hidden(pooled)))


def learn_products_only(table):
    rows = torch.zeros(KNOWN + PRODUCTS, 1)
    rows[KNOWN:] = 1.0
    return table.weight.register_hook(lambda grad: grad * rows)


def accuracy(model, tokens, queue):
    model.eval()
    with torch.no_grad():
        hits = model(tokens).argmax(dim=1) == queue
    model.train()
    return hits.float().mean().item()


def export_table(model):
    table = model.table.weight.detach().clone()
    return {"known": table[:KNOWN], "products": table[KNOWN:]}


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(30)
    vectors, word_queue = delivered_vectors(generator)
    product_queue = torch.arange(PRODUCTS) % QUEUES
    tokens, queue = make_tickets(800, word_queue, product_queue, generator)
    test_tokens, test_queue = make_tickets(300, word_queue, product_queue, generator)

    model = TicketRouter(vectors)
    learn_products_only(model.table)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)

    for step in range(STEPS):
        pick = torch.randint(0, len(tokens), (BATCH,), generator=generator)
        loss = F.cross_entropy(model(tokens[pick]), queue[pick])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 44 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  "
                  f"test accuracy {accuracy(model, test_tokens, test_queue):.3f}")

    table = export_table(model)
    print(f"final test accuracy {accuracy(model, test_tokens, test_queue):.3f}")
    print(f"exported {len(table['known'])} known words and {len(table['products'])} product names")
    return model, vectors, table


if __name__ == "__main__":
    model, vectors, table = main()
