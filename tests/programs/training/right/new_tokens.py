"""Teach a trained text model a few new tokens without touching the rest."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
OLD, NEW, TOPICS = 40, 8, 4


class TextModel(nn.Module):
    def __init__(self, vocab, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, TOPICS)

    def forward(self, tokens):
        return self.out(torch.tanh(self.embed(tokens)).mean(dim=1))


def texts(n, low, high, length=8):
    y = torch.randint(TOPICS, (n,))
    tokens = torch.randint(low, high, (n, length))
    own = tokens - (tokens - low) % TOPICS + y.unsqueeze(1)
    keep = torch.rand(n, length) < 0.5
    return torch.where(keep, own, tokens), y


def fit(model, opt, tokens, labels, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(tokens)).split(64):
            loss = F.cross_entropy(model(tokens[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


def accuracy(model, tokens, labels):
    with torch.no_grad():
        return (model(tokens).argmax(1) == labels).float().mean().item()


base = TextModel(OLD)
tokens, labels = texts(512, 0, OLD)
fit(base, torch.optim.Adam(base.parameters(), lr=1e-2), tokens, labels, epochs=8)

model = TextModel(OLD + NEW)
with torch.no_grad():
    model.embed.weight[:OLD] = base.embed.weight
    model.embed.weight[OLD:] = base.embed.weight.mean(dim=0) + 0.1 * torch.randn(NEW, 16)
    model.out.load_state_dict(base.out.state_dict())
model.out.requires_grad_(False)

new_rows = torch.zeros(OLD + NEW, 1)
new_rows[OLD:] = 1.0
handle = model.embed.weight.register_hook(lambda grad: grad * new_rows)
opt = torch.optim.SGD([model.embed.weight], lr=20.0)

new_tokens, new_labels = texts(384, OLD, OLD + NEW)
test_tokens, test_labels = texts(200, OLD, OLD + NEW)
print(f"before: new {accuracy(model, test_tokens, test_labels):.3f} old {accuracy(model, tokens, labels):.3f}")
fit(model, opt, new_tokens, new_labels, epochs=10)
handle.remove()
print(f"after: new {accuracy(model, test_tokens, test_labels):.3f} old {accuracy(model, tokens, labels):.3f}")
print("old rows unchanged:", torch.equal(model.embed.weight[:OLD], base.embed.weight))
