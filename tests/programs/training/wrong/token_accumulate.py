"""Token model trained with accumulation over batches of variable length text."""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCAB, ACCUM = 0, 30, 4


class TinyLM(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return self.out(h)


def sentence(length, gen):
    start = int(torch.randint(1, VOCAB, (1,), generator=gen))
    step = 1 if length > 8 else 3
    return torch.tensor([(start + step * i - 1) % (VOCAB - 1) + 1 for i in range(length)])


def collate(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def make_batches(gen, n_batches=24, size=8):
    batches = []
    for b in range(n_batches):
        low, high = [(3, 5), (3, 5), (4, 6), (20, 28)][b % 4]
        lengths = torch.randint(low, high, (size,), generator=gen).tolist()
        batches.append(collate([sentence(n, gen) for n in lengths]))
    return batches


def language_loss(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1), ignore_index=PAD)


def main():
    torch.manual_seed(59)
    gen = torch.Generator().manual_seed(60)
    batches = make_batches(gen)
    model = TinyLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        optimizer.zero_grad()
        total = 0.0
        for i, tokens in enumerate(batches):
            loss = language_loss(model, tokens)
            (loss / ACCUM).backward()
            total += loss.item()
            if (i + 1) % ACCUM == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch}: loss {total / len(batches):.4f}")


if __name__ == "__main__":
    main()
