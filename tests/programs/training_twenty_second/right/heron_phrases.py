"""Phrase model: a tied-embedding GRU language model on padded phrases, trained with micro-batches."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

PAD, BOS, EOS = 0, 1, 2
IGNORE = -100
LEXICON = "the a heron heron's pond reed fish frog waits walks eats near under slowly at dawn".split()
TOKEN = {w: i + 3 for i, w in enumerate(LEXICON)}
VOCAB = len(LEXICON) + 3


def phrase(gen):
    def pick(*words):
        return words[torch.randint(len(words), (1,), generator=gen).item()]

    out = [pick("the", "a"), pick("heron", "frog", "fish"), pick("waits", "walks", "eats")]
    while torch.rand(1, generator=gen).item() < 0.5 and len(out) < 14:
        out += [pick("near", "under"), pick("the", "a"), pick("pond", "reed")]
    if torch.rand(1, generator=gen).item() < 0.4:
        out += ["at", "dawn"]
    return torch.tensor([BOS] + [TOKEN[w] for w in out] + [EOS])


def collate(phrases):
    inputs = pad_sequence([p[:-1] for p in phrases], batch_first=True, padding_value=PAD)
    targets = pad_sequence([p[1:] for p in phrases], batch_first=True, padding_value=IGNORE)
    return inputs, targets


class PhraseModel(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)
        self.out.weight = self.embed.weight

    def forward(self, inputs):
        hidden, _ = self.rnn(self.embed(inputs))
        return self.out(hidden)


def token_loss(model, phrases):
    """Summed negative log-likelihood and number of predicted tokens."""
    inputs, targets = collate(phrases)
    logits = model(inputs)
    nll = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")
    return nll, int((targets != IGNORE).sum())


def accumulate(model, phrases, micro):
    """Backward over the batch in chunks of `micro` phrases; returns the loss per token."""
    tokens = sum(len(p) - 1 for p in phrases)
    total = 0.0
    for i in range(0, len(phrases), micro):
        nll, _ = token_loss(model, phrases[i:i + micro])
        (nll / tokens).backward()
        total += nll.item()
    return total / tokens


def main(steps=120, batch=30, micro=8):
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(9)
    train_set = [phrase(gen) for _ in range(500)]
    valid_set = [phrase(gen) for _ in range(120)]
    model = PhraseModel()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        rows = torch.randint(len(train_set), (batch,), generator=gen).tolist()
        opt.zero_grad()
        loss = accumulate(model, [train_set[r] for r in rows], micro)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 30 == 0 or step == steps - 1:
            with torch.no_grad():
                nll, count = token_loss(model, valid_set)
            print(f"step {step:4d}  train {loss:.3f}  valid ppl {(nll / count).exp().item():.3f}")
    return model


if __name__ == "__main__":
    main()
