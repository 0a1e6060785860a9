"""Adapting a small character model to a new dialect: the model stays, only the embeddings of the added symbols are learned."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(12)

OLD, NEW = 20, 4
LENGTH = 16


def make_text(n, transition):
    seq = torch.randint(OLD, (n, 1))
    for _ in range(LENGTH - 1):
        nxt = torch.multinomial(transition[seq[:, -1]], 1)
        seq = torch.cat([seq, nxt], 1)
    return seq


def to_dialect(seq, roots):
    """The dialect writes some occurrences of four of the old symbols with new ones."""
    seq = seq.clone()
    swap = torch.rand(seq.shape) < 0.8
    for k, root in enumerate(roots):
        seq[(seq == root) & swap] = OLD + k
    return seq


class CharModel(nn.Module):
    def __init__(self, vocab, dim=32, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.proj = nn.Linear(hidden, dim)

    def forward(self, seq):
        h, _ = self.rnn(self.embed(seq))
        return self.proj(self.drop(h)) @ self.embed.weight.T


def lm_loss(model, seq):
    logits = model(seq[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())


@torch.no_grad()
def evaluate(model, seq):
    was_training = model.training
    model.eval()
    value = lm_loss(model, seq).item()
    model.train(was_training)
    return value


def grow_vocabulary(model, extra):
    old = model.embed.weight.detach()
    model.embed = nn.Embedding(len(old) + extra, old.shape[1])
    with torch.no_grad():
        model.embed.weight[:len(old)] = old
        model.embed.weight[len(old):] = old.mean(0) + 0.02 * torch.randn(extra, old.shape[1])


transition = torch.softmax(2.5 * torch.randn(OLD, OLD), 1)
standard, standard_test = make_text(800, transition), make_text(300, transition)
roots = torch.randperm(OLD)[:NEW].tolist()
dialect = to_dialect(make_text(400, transition), roots)
dialect_test = to_dialect(make_text(300, transition), roots)

model = CharModel(OLD)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(6):
    for batch in standard[torch.randperm(len(standard))].split(64):
        loss = lm_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"standard text: test loss {evaluate(model, standard_test):.3f}")

grow_vocabulary(model, NEW)
for p in model.parameters():
    p.requires_grad_(False)
model.embed.weight.requires_grad_(True)

row_mask = torch.zeros(OLD + NEW, 1)
row_mask[OLD:] = 1.0
model.embed.weight.register_hook(lambda grad: grad * row_mask)
before = model.embed.weight.detach().clone()
print(f"dialect before: test loss {evaluate(model, dialect_test):.3f}")

# no weight decay: it would shrink the rows of the old symbols too
optimizer = torch.optim.AdamW([model.embed.weight], lr=2e-2, weight_decay=0.0)
model.eval()  # no dropout: only four vectors are fitted
for epoch in range(8):
    for batch in dialect[torch.randperm(len(dialect))].split(64):
        loss = lm_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}  dialect test loss {evaluate(model, dialect_test):.3f}")

moved = (model.embed.weight.detach() - before).norm(dim=1)
print(f"old rows moved by {moved[:OLD].max().item():.4f}, new rows by {moved[OLD:].mean().item():.3f}")
print(f"standard text with the adapted model: {evaluate(model, standard_test):.3f}")
