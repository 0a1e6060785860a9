"""Character model of letters written by a small grammar; it also prints a few sampled lines and the perplexity."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F

GREETINGS = ["dear", "hello", "my dear", "good day"]
NAMES = ["ada", "boris", "clara", "dmitri"]
BODIES = ["the roof is mended", "we miss you", "the hens lay well", "send more ink"]


@dataclass
class Setup:
    letters: int = 900
    width: int = 48
    embedding: int = 16
    batch: int = 32
    epochs: int = 4
    lr: float = 1e-2
    smoothing: float = 0.05
    seed: int = 13


def write_letters(setup):
    gen = torch.Generator().manual_seed(setup.seed)

    def pick(options):
        return options[int(torch.randint(len(options), (1,), generator=gen))]

    return [f"{pick(GREETINGS)} {pick(NAMES)}, {pick(BODIES)}" for _ in range(setup.letters)]


class Alphabet:
    def __init__(self, texts):
        self.symbols = ["<pad>", "<end>"] + sorted(set("".join(texts)))
        self.index = {s: i for i, s in enumerate(self.symbols)}

    def __len__(self):
        return len(self.symbols)

    def encode(self, texts):
        rows = [torch.tensor([1] + [self.index[c] for c in t] + [1]) for t in texts]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)


class LetterModel(nn.Module):
    """Gives log-probabilities of the next character, ready for sampling and scoring."""

    def __init__(self, n_symbols, setup):
        super().__init__()
        self.embed = nn.Embedding(n_symbols, setup.embedding, padding_idx=0)
        self.rnn = nn.LSTM(setup.embedding, setup.width, batch_first=True)
        self.out = nn.Linear(setup.width, n_symbols)

    def forward(self, tokens, state=None):
        hidden, state = self.rnn(self.embed(tokens), state)
        return F.log_softmax(self.out(hidden), dim=-1), state


def sequence_loss(model, tokens, smoothing=0.0):
    log_probs, _ = model(tokens[:, :-1])
    return F.cross_entropy(log_probs.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0, label_smoothing=smoothing)


@torch.no_grad()
def sample(model, alphabet, gen, limit=60):
    token, state, text = torch.tensor([[1]]), None, ""
    for _ in range(limit):
        log_probs, state = model(token, state)
        token = torch.multinomial(log_probs[0, -1].exp(), 1, generator=gen)[None]
        if token.item() <= 1:
            break
        text += alphabet.symbols[token.item()]
    return text


def main(setup=Setup()):
    torch.set_num_threads(1)
    torch.manual_seed(setup.seed)
    gen = torch.Generator().manual_seed(setup.seed + 1)
    texts = write_letters(setup)
    alphabet = Alphabet(texts)
    tokens = alphabet.encode(texts)
    train, held = tokens[:-100], tokens[-100:]
    model = LetterModel(len(alphabet), setup)
    optimizer = torch.optim.Adam(model.parameters(), lr=setup.lr)
    for epoch in range(setup.epochs):
        for batch in train[torch.randperm(len(train), generator=gen)].split(setup.batch):
            loss = sequence_loss(model, batch, setup.smoothing)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        with torch.no_grad():
            perplexity = sequence_loss(model, held).exp().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, held-out perplexity {perplexity:.3f}")
    for _ in range(3):
        print("  >", sample(model, alphabet, gen))
    return model, held, perplexity


if __name__ == "__main__":
    model, held, perplexity = main()
