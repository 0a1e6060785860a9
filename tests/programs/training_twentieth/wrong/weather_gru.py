"""Character-level GRU language model on short weather reports, with truncated back-propagation through time."""
import math
import random

import torch
import torch.nn as nn

SEED = 3
BATCH, SEQ_LEN, EPOCHS = 20, 25, 5
CLIP = 1.0

random.seed(SEED)
torch.manual_seed(SEED)

PLACES = ["in the north", "in the south", "on the coast", "over the hills", "near the lakes"]
SKIES = ["clear", "cloudy", "rainy", "stormy", "foggy"]
ADVICE = {
    "clear": "take a hat",
    "cloudy": "no worries",
    "rainy": "take an umbrella",
    "stormy": "stay at home",
    "foggy": "drive slowly",
}


def make_corpus(n_reports):
    reports = []
    for _ in range(n_reports):
        sky = random.choice(SKIES)
        reports.append(f"it is {sky} {random.choice(PLACES)}, {ADVICE[sky]}.\n")
    return "".join(reports)


def batchify(ids, batch_size):
    """Lay the text out as `batch_size` parallel streams, time first: (steps, batch)."""
    steps = ids.numel() // batch_size
    ids = ids[: steps * batch_size]
    return ids.view(-1, batch_size)


def get_chunk(streams, start):
    length = min(SEQ_LEN, streams.size(0) - 1 - start)
    return streams[start : start + length], streams[start + 1 : start + 1 + length]


class CharGRU(nn.Module):
    def __init__(self, n_chars, emb=24, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(n_chars, emb)
        self.gru = nn.GRU(emb, hidden)
        self.out = nn.Linear(hidden, n_chars)

    def forward(self, chars, state=None):
        h, state = self.gru(self.emb(chars), state)
        return self.out(h), state


def evaluate(model, streams):
    model.eval()
    state, total, count = None, 0.0, 0
    with torch.no_grad():
        for start in range(0, streams.size(0) - 1, SEQ_LEN):
            x, y = get_chunk(streams, start)
            logits, state = model(x, state)
            total += criterion(logits.flatten(0, 1), y.flatten()).item() * y.numel()
            count += y.numel()
    return total / count


def sample(model, prompt, n_new):
    model.eval()
    text = prompt
    x, state = torch.tensor([stoi[c] for c in prompt]).unsqueeze(1), None
    with torch.no_grad():
        for _ in range(n_new):
            logits, state = model(x, state)
            x = logits[-1].argmax(dim=-1, keepdim=True)
            text += itos[x.item()]
    return text


train_text, valid_text = make_corpus(1000), make_corpus(120)
itos = sorted(set(train_text))
stoi = {c: i for i, c in enumerate(itos)}
train_streams = batchify(torch.tensor([stoi[c] for c in train_text]), BATCH)
valid_streams = batchify(torch.tensor([stoi[c] for c in valid_text]), BATCH)

model = CharGRU(len(itos))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(1, EPOCHS + 1):
    model.train()
    state = None
    for start in range(0, train_streams.size(0) - 1, SEQ_LEN):
        x, y = get_chunk(train_streams, start)
        if state is not None:
            state = state.detach()
        logits, state = model(x, state)
        loss = criterion(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    valid_loss = evaluate(model, valid_streams)
    print(f"epoch {epoch}: valid loss {valid_loss:.3f}  perplexity {math.exp(valid_loss):.2f}")

print(sample(model, "it is rainy ", 60))
