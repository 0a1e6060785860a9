"""Tiny autoregressive model over recipe steps; every recipe ends when the dish is served (EOS)."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

N_STEPS = 12
EOS = N_STEPS
BOS = N_STEPS + 1
PAD = EOS
VOCAB = N_STEPS + 2


@dataclass
class Config:
    recipes: int = 1200
    hidden: int = 64
    batch_size: int = 64
    epochs: int = 8
    lr: float = 4e-3
    max_new: int = 40
    seed: int = 5


def write_recipe(gen):
    """A recipe walks upward through the steps with small jumps and ends once it has passed the last one."""
    step, out = int(torch.randint(0, 3, (1,), generator=gen)), []
    while step < N_STEPS:
        out.append(step)
        step += int(torch.randint(1, 4, (1,), generator=gen))
    return torch.tensor([BOS] + out + [EOS])


def collate(recipes):
    ids = pad_sequence(recipes, batch_first=True, padding_value=PAD)
    labels = ids.clone()
    labels[labels == PAD] = -100
    return ids[:, :-1], labels[:, 1:]


class StepModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, VOCAB)

    def forward(self, ids, state=None):
        out, state = self.rnn(self.embed(ids), state)
        return self.head(out), state


def sequence_loss(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)


def batches(data, size, gen):
    order = torch.randperm(len(data), generator=gen).tolist()
    for i in range(0, len(order), size):
        yield collate([data[j] for j in order[i:i + size]])


@torch.no_grad()
def generate(model, n, max_new, gen):
    token, state = torch.full((n, 1), BOS), None
    done = torch.zeros(n, dtype=torch.bool)
    lengths = torch.zeros(n)
    for _ in range(max_new):
        logits, state = model(token, state)
        token = torch.multinomial(logits[:, -1].softmax(-1), 1, generator=gen)
        done |= token[:, 0] == EOS
        if done.all():
            break
        lengths += (~done).float()
    return lengths


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    corpus = [write_recipe(gen) for _ in range(cfg.recipes)]
    held_out, train = corpus[:200], corpus[200:]
    model = StepModel(cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        for ids, labels in batches(train, cfg.batch_size, gen):
            logits, _ = model(ids)
            loss = sequence_loss(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            ids, labels = collate(held_out)
            val = sequence_loss(model(ids)[0], labels)
        print(f"epoch {epoch + 1}: train {loss.item():.3f}  held-out perplexity {val.exp():.3f}")
    lengths = generate(model, 200, cfg.max_new, gen)
    print(f"sampled recipes: mean length {lengths.mean():.1f}")
    return model, held_out, lengths


if __name__ == "__main__":
    model, held_out, lengths = main()
