"""A tiny GRU language model that writes one-line recipes."""
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

VERBS = ["boil", "fry", "roast", "steam", "grill"]
FOODS = ["rice", "leek", "trout", "beans", "squash", "egg"]
EXTRAS = ["salt", "thyme", "butter", "lemon", "pepper"]


@dataclass
class Config:
    hidden: int = 64
    batch_size: int = 32
    steps: int = 350
    lr: float = 4e-3
    ignore_index: int = -100


class Tokenizer:
    def __init__(self):
        words = ["<|bos|>", "<|end|>", "with", "and"] + VERBS + FOODS + EXTRAS
        self.vocab = {w: i for i, w in enumerate(words)}
        self.words = words
        self.bos_id = self.vocab["<|bos|>"]
        self.eos_id = self.vocab["<|end|>"]
        self.pad_id = self.eos_id

    def encode(self, text):
        return [self.bos_id] + [self.vocab[w] for w in text.split()] + [self.eos_id]

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids)


def make_recipe(rng):
    text = f"{rng.choice(VERBS)} {rng.choice(FOODS)}"
    if rng.random() < 0.6:
        text += f" with {rng.choice(EXTRAS)}"
        while rng.random() < 0.4:
            text += f" and {rng.choice(EXTRAS)}"
    return text


def collate(batch, tokenizer, config):
    """Right-pad a batch of token lists; returns inputs and next-token labels."""
    ids = pad_sequence([torch.tensor(b) for b in batch], batch_first=True, padding_value=tokenizer.pad_id)
    inputs, labels = ids[:, :-1], ids[:, 1:].clone()
    labels[labels == tokenizer.pad_id] = config.ignore_index
    return inputs, labels


class Babbler(nn.Module):
    def __init__(self, vocab_size, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab_size)

    def forward(self, ids, state=None):
        out, state = self.rnn(self.embed(ids), state)
        return self.head(out), state


@torch.no_grad()
def generate(model, tokenizer, max_new_tokens=24):
    model.eval()
    token, state, out = torch.tensor([[tokenizer.bos_id]]), None, []
    while len(out) < max_new_tokens:
        logits, state = model(token, state)
        token = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1)
        if token.item() == tokenizer.eos_id:
            break
        out.append(token.item())
    return tokenizer.decode(out)


def train(model, corpus, tokenizer, config):
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    model.train()
    for step in range(config.steps):
        inputs, labels = collate(random.sample(corpus, config.batch_size), tokenizer, config)
        logits, _ = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=config.ignore_index)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}")


if __name__ == "__main__":
    random.seed(3)
    torch.manual_seed(3)
    config, tokenizer, rng = Config(), Tokenizer(), random.Random(11)
    corpus = [tokenizer.encode(make_recipe(rng)) for _ in range(2000)]
    model = Babbler(len(tokenizer.words), config.hidden)
    train(model, corpus, tokenizer, config)
    for _ in range(4):
        print(">", generate(model, tokenizer))
