import torch
import torch.nn.functional as F
from torch import nn


class TagModel(nn.Module):
    def __init__(self, words, tags, dim):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, dim)
        self.tags = nn.Embedding(tags, dim)

    def forward(self, docs):
        return F.linear(self.bag(docs), self.tags.weight)


class Stream:
    def __init__(self, words, first):
        self.words, self.count = words, first
        self.topic = torch.randn(words, 10)

    def widen(self, extra):
        self.count += extra

    def __iter__(self):
        for _ in range(40):
            docs = torch.randint(self.words, (64, 5))
            yield docs, self.topic[docs].sum(1)[:, :self.count].argmax(1)


def enlarge(model, extra):
    old = model.tags.weight.detach()
    rows = torch.cat([old, old.mean(0, keepdim=True) + 0.01 * torch.randn(extra, old.size(1))])
    model.tags.weight = nn.Parameter(rows)
    model.tags.num_embeddings += extra


def listen(model, stream, optimizer, name):
    loss_sum = 0.0
    for docs, tag in stream:
        loss = F.cross_entropy(model(docs), tag)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
    print(f"{name}: mean loss {loss_sum / 40:.4f}, table norm {model.tags.weight.norm().item():.4f}")


def main():
    torch.manual_seed(43)
    model, stream = TagModel(80, 4, 12), Stream(80, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for month in range(3):
        listen(model, stream, optimizer, f"month {month}")
    for month in range(3, 6):
        stream.widen(2)
        enlarge(model, 2)
        listen(model, stream, optimizer, f"month {month}")


if __name__ == "__main__":
    main()
