"""Character-level recurrent language model with truncated back-propagation through time."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CHUNK = 20
BATCH = 16


def bracket_text(n_steps, batch, depth=4):
    """Sequences in which a symbol has to be repeated `depth` steps after it was shown."""
    symbols = torch.randint(2, 8, (n_steps // (depth + 2) + 1, batch))
    rows = []
    for s in symbols:
        rows.append(s)
        rows.extend(torch.zeros(depth, batch, dtype=torch.long))
        rows.append(s)
    return torch.stack(rows)[: n_steps + 1]


class CharRNN(nn.Module):
    def __init__(self, vocab=8, emb=12, hidden=48, layers=2):
        super().__init__()
        self.hidden_size = hidden
        self.embedding = nn.Embedding(vocab, emb)
        self.cells = nn.ModuleList(
            [nn.GRUCell(emb if i == 0 else hidden, hidden) for i in range(layers)]
        )
        self.out = nn.Linear(hidden, vocab)

    def init_state(self, batch):
        return [torch.zeros(batch, self.hidden_size) for _ in self.cells]

    def step(self, token, state):
        h = self.embedding(token)
        new_state = []
        for cell, s in zip(self.cells, state):
            h = cell(h, s)
            new_state.append(h)
        return self.out(h), new_state

    def forward(self, tokens, state):
        logits = []
        for token in tokens:
            state = [s.detach() for s in state]
            logit, state = self.step(token, state)
            logits.append(logit)
        return torch.stack(logits), state


def train_epoch(model, optimizer, text):
    state = model.init_state(text.size(1))
    total, count = 0.0, 0
    for start in range(0, text.size(0) - CHUNK, CHUNK):
        inputs = text[start : start + CHUNK]
        targets = text[start + 1 : start + CHUNK + 1]
        logits, state = model(inputs, state)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        count += 1
    return total / count


@torch.no_grad()
def recall_accuracy(model, text, period=6):
    model.eval()
    logits, _ = model(text[:-1], model.init_state(text.size(1)))
    position = torch.arange(1, text.size(0)) % period == period - 1
    hit = logits.argmax(-1) == text[1:]
    model.train()
    return hit[position].float().mean().item()


torch.manual_seed(16)
text = bracket_text(600, BATCH)
held_out = bracket_text(120, BATCH)
model = CharRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    loss = train_epoch(model, optimizer, text)
    recall = recall_accuracy(model, held_out)
    print(f"epoch {epoch} loss {loss:.3f} recall accuracy {recall:.3f}")
