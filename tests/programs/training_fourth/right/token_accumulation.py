"""Next-character model with ragged lines: micro-batches are weighted by their number of real tokens."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

WORDS = ["gradient", "graph", "tensor", "step", "loss", "mean", "batch", "token"]
CHARS = sorted({c for w in WORDS for c in w} | {" ", "_"})
INDEX = {c: i for i, c in enumerate(CHARS)}
PAD = INDEX["_"]


def line():
    count = int(torch.randint(1, 6, (1,)))
    text = " ".join(WORDS[int(torch.randint(0, len(WORDS), (1,)))] for _ in range(count))
    return torch.tensor([INDEX[c] for c in text])


def collate(lines):
    return nn.utils.rnn.pad_sequence(lines, batch_first=True, padding_value=PAD)


class CharModel(nn.Module):
    def __init__(self, dim=24, context=4):
        super().__init__()
        self.context = context
        self.embed = nn.Embedding(len(CHARS), dim, padding_idx=PAD)
        self.net = nn.Sequential(nn.Linear(dim * context, 64), nn.ReLU(), nn.Linear(64, len(CHARS)))

    def forward(self, tokens):
        e = F.pad(self.embed(tokens), (0, 0, self.context - 1, 0))
        e = e.unfold(1, self.context, 1).flatten(2)
        return self.net(e)


def summed_loss(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD, reduction="sum")


def token_count(tokens):
    return int((tokens[:, 1:] != PAD).sum())


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
lines = [line() for _ in range(400)]
for epoch in range(5):
    order = torch.randperm(len(lines)).tolist()
    for start in range(0, len(lines), 40):
        micro = [collate([lines[i] for i in order[k:k + 10]]) for k in range(start, start + 40, 10)]
        total = sum(token_count(m) for m in micro)
        optimizer.zero_grad()
        seen = 0.0
        for tokens in micro:
            loss = summed_loss(model, tokens) / total
            loss.backward()
            seen += loss.item()
        optimizer.step()
    print(f"epoch {epoch} loss per token {seen:.3f}")

# the accumulated gradient is that of the large batch
tokens = collate(lines[:40])
big = torch.autograd.grad(summed_loss(model, tokens) / token_count(tokens), list(model.parameters()))
optimizer.zero_grad()
for k in range(0, 40, 10):
    (summed_loss(model, collate(lines[k:k + 10])) / token_count(tokens)).backward()
gap = max((p.grad - g).abs().max().item() for p, g in zip(model.parameters(), big))
print(f"largest difference to the large batch {gap:.2e}")
