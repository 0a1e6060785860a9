"""Routes support tickets to a queue: a small transformer encoder over token ids. The queue depends on what comes
together in a ticket (product word and complaint word), so the tokens have to look at each other."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

VOCAB, LENGTH, QUEUES = 60, 10, 4
PRODUCTS = torch.arange(0, 4)
COMPLAINTS = torch.arange(4, 8)


def make_tickets(n, gen):
    tokens = torch.randint(8, VOCAB, (n, LENGTH), generator=gen)
    prod = torch.randint(0, 4, (n,), generator=gen)
    comp = torch.randint(0, 4, (n,), generator=gen)
    for i in range(n):
        a, b = torch.randperm(LENGTH, generator=gen)[:2]
        tokens[i, a] = PRODUCTS[prod[i]]
        tokens[i, b] = COMPLAINTS[comp[i]]
    queue = 2 * ((prod % 2) ^ (comp % 2)) + ((prod // 2) ^ (comp // 2))
    return tokens, queue


class Positions(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        freq = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(max_len, dim)
        table[:, 0::2] = torch.sin(pos * freq)
        table[:, 1::2] = torch.cos(pos * freq)
        self.register_buffer("table", 0.3 * table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class TicketRouter(nn.Module):
    def __init__(self, dim=32, heads=4, layers=1):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.positions = Positions(dim, LENGTH)
        layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=64, dropout=0.05, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, QUEUES)

    def forward(self, tokens):
        h = self.positions(self.embed(tokens))
        h = self.norm(self.encoder(h))
        return self.head(h.mean(dim=1))


@torch.no_grad()
def accuracy(model, tokens, queue, batch_size=64):
    model.eval()
    hits = 0
    for t, q in zip(tokens.split(batch_size), queue.split(batch_size)):
        hits += (model(t).argmax(1) == q).sum().item()
    return hits / len(queue)


def train(epochs=9, batch_size=64):
    gen = torch.Generator().manual_seed(5)
    x, y = make_tickets(2048, gen)
    x_test, y_test = make_tickets(512, gen)
    model = TicketRouter()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    steps = epochs * math.ceil(len(x) / batch_size)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=steps)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            running += loss.item() * len(idx)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  loss {running / len(x):.4f}  test acc {accuracy(model, x_test, y_test):.3f}")
    return model, accuracy(model, x, y), accuracy(model, x_test, y_test)


if __name__ == "__main__":
    model, train_acc, test_acc = train()
    print(f"final train acc {train_acc:.3f}  test acc {test_acc:.3f}")
