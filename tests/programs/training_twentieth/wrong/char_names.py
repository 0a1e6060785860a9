"""Character language model with a GRU; the corpus is a made-up list of elvish names."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
CHUNK = 32
BATCH = 24
STEPS = 200
HIDDEN = 64

random.seed(SEED)
torch.manual_seed(SEED)

ONSETS = ["b", "dr", "el", "f", "gal", "l", "mir", "n", "r", "th"]
VOWELS = {"b": "ao", "dr": "io", "el": "ae", "f": "ei", "gal": "ao", "l": "ou", "mir": "ia", "n": "eu", "r": "oi", "th": "ae"}
ENDINGS = ["dil", "rond", "wen", "las", "mir"]


def make_name():
    name = ""
    for _ in range(random.randint(1, 3)):
        onset = random.choice(ONSETS)
        name += onset + random.choice(VOWELS[onset])
    return name + random.choice(ENDINGS)


text = "\n".join(make_name() for _ in range(4000))
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
data = torch.tensor([index[c] for c in text])
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]


def get_batch(source):
    starts = torch.randint(len(source) - CHUNK - 1, (BATCH,))
    x = torch.stack([source[s:s + CHUNK] for s in starts])
    y = torch.stack([source[s + 1:s + CHUNK + 1] for s in starts])
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, 24)
        self.gru = nn.GRU(24, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        h, state = self.gru(self.embed(x), state)
        return self.out(h), state


def sequence_loss(logits, targets):
    """Cross-entropy over all positions; the class dimension has to come second."""
    batch, time, vocab = logits.shape
    return F.cross_entropy(logits.reshape(batch, vocab, time), targets)


@torch.no_grad()
def sample(model, length=60):
    model.eval()
    token, state, out = torch.tensor([[index["\n"]]]), None, []
    for _ in range(length):
        logits, state = model(token, state)
        token = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1)
        out.append(chars[token.item()])
    return "".join(out)


@torch.no_grad()
def val_loss(model, batches=10):
    model.eval()
    losses = [sequence_loss(model(x)[0], y) for x, y in (get_batch(val_data) for _ in range(batches))]
    model.train()
    return torch.stack(losses).mean().item()


model = CharModel(len(chars), HIDDEN)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for step in range(1, STEPS + 1):
    x, y = get_batch(train_data)
    logits, _ = model(x)
    loss = sequence_loss(logits, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: train {loss.item():.3f}  val {val_loss(model):.3f}")

final_val = val_loss(model)
print(f"final validation loss: {final_val:.3f} nats per character")
print("sample:", sample(model).replace("\n", " "))
