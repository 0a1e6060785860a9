"""Adding new tokens to a trained text classifier: only the new embedding rows learn, enforced by a gradient hook."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BagClassifier(nn.Module):
    def __init__(self, vocab, dim=24, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.LayerNorm(dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens):
        return self.head(self.mix(self.embedding(tokens).mean(dim=1)))


def extend_vocabulary(model, extra):
    old = model.embedding
    new = nn.Embedding(old.num_embeddings + extra, old.embedding_dim)
    with torch.no_grad():
        new.weight[: old.num_embeddings] = old.weight
        new.weight[old.num_embeddings :] = old.weight.mean(0) + 0.02 * torch.randn(extra, old.embedding_dim)
    model.embedding = new
    return old.num_embeddings


def keep_rows_fixed(parameter, n_fixed):
    mask = torch.ones(parameter.size(0), 1)
    mask[:n_fixed] = 0
    return parameter.register_hook(lambda grad: grad * mask)


def documents(n, topics, low, high, length=12):
    y = torch.randint(0, topics.size(0), (n,))
    tokens = torch.multinomial(topics[y][:, low:high], length, replacement=True) + low
    return tokens, y


def train(model, data, optimizer, steps, batch=64):
    tokens, y = data
    model.train()
    for _ in range(steps):
        idx = torch.randint(0, y.numel(), (batch,))
        loss = F.cross_entropy(model(tokens[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


torch.manual_seed(14)
topics = torch.softmax(1.2 * torch.randn(3, 80), dim=1)
old_data = documents(1500, topics, 0, 60)
new_data = documents(500, topics, 60, 80)
model = BagClassifier(60)
train(model, old_data, torch.optim.Adam(model.parameters(), lr=5e-3), 150)
print(f"old tokens {accuracy(model, old_data):.3f}")

n_old = extend_vocabulary(model, 20)
print(f"new tokens before {accuracy(model, new_data):.3f}")
for module in (model.mix, model.head):
    module.requires_grad_(False)
handle = keep_rows_fixed(model.embedding.weight, n_old)
frozen_copy = model.embedding.weight[:n_old].detach().clone()
optimizer = torch.optim.Adam([model.embedding.weight], lr=2e-2)
loss = train(model, new_data, optimizer, 200)
handle.remove()
same = torch.equal(frozen_copy, model.embedding.weight[:n_old])
print(f"new tokens after {accuracy(model, new_data):.3f} old tokens {accuracy(model, old_data):.3f} old rows unchanged {same}")
