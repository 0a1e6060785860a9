"""Character-level LSTM on folk tunes in a toy ABC notation; eight continuous streams, truncated backpropagation.

The decoder uses the embedding matrix (Press & Wolf 2017), which saves parameters in a model this small.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NOTES = "CDEFGABcdefg"
ALPHABET = NOTES + "|:12\n"
INDEX = {c: i for i, c in enumerate(ALPHABET)}
EMBED, HIDDEN = 32, 80
STREAMS, CHUNK = 8, 20


def compose(n_tunes, seed):
    """A tune is a random motif, played with a transposition, and repeated as in A A' A."""
    rng = np.random.default_rng(seed)
    text = []
    for _ in range(n_tunes):
        motif = np.clip(np.cumsum(rng.integers(-1, 2, 6)) + rng.integers(2, 8), 0, 9)
        lift = rng.integers(1, 3)
        a = "".join(NOTES[k] for k in motif)
        b = "".join(NOTES[k + lift] for k in motif)
        text.append(f"{lift}:{a}|{b}|{a}\n")
    return torch.tensor([INDEX[c] for c in "".join(text)])


def to_streams(tokens):
    usable = (len(tokens) - 1) // STREAMS * STREAMS
    return tokens[:usable].view(STREAMS, -1), tokens[1:usable + 1].view(STREAMS, -1)


class TuneModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), EMBED)
        self.lstm = nn.LSTM(EMBED, HIDDEN, batch_first=True)
        self.to_embed = nn.Linear(HIDDEN, EMBED)
        self.decode = nn.Linear(EMBED, len(ALPHABET))
        nn.init.normal_(self.embed.weight, std=EMBED ** -0.5)
        self.decode.weight = self.embed.weight
        nn.init.zeros_(self.decode.bias)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, state=None):
        out, state = self.lstm(self.drop(self.embed(x)), state)
        return self.decode(self.to_embed(self.drop(out))), state


def train_epoch(model, optimizer, inputs, targets):
    model.train()
    state = None
    total, count = 0.0, 0
    for start in range(0, inputs.size(1), CHUNK):
        x, y = inputs[:, start:start + CHUNK], targets[:, start:start + CHUNK]
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * y.numel()
        count += y.numel()
    return total / count


@torch.no_grad()
def bits_per_char(model, inputs, targets):
    model.eval()
    logits, _ = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item() / np.log(2)


@torch.no_grad()
def sample(model, length=48, temperature=0.5):
    model.eval()
    token, state, out = torch.tensor([[INDEX["\n"]]]), None, []
    for _ in range(length):
        logits, state = model(token, state)
        token = torch.multinomial((logits[:, -1] / temperature).softmax(-1), 1)
        out.append(ALPHABET[token.item()])
    return "".join(out)


def main():
    torch.manual_seed(12)
    train, valid = to_streams(compose(320, seed=1)), to_streams(compose(60, seed=2))
    model = TuneModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14, eta_min=5e-4)
    for epoch in range(14):
        loss = train_epoch(model, optimizer, *train)
        scheduler.step()
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1:2d}  train {loss / np.log(2):.3f}  valid {bits_per_char(model, *valid):.3f} bits")
    print(sample(model).strip())


if __name__ == "__main__":
    main()
