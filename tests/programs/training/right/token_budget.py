"""Next-token model with accumulation normalised by the number of tokens."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

PAD, VOCAB, GROUP = 0, 24, 3


class LM(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def sentence(gen):
    length = int(torch.randint(4, 20, (1,), generator=gen))
    start = int(torch.randint(1, VOCAB, (1,), generator=gen))
    stride = 1 + start % 2
    return torch.tensor([(start - 1 + stride * i) % (VOCAB - 1) + 1 for i in range(length)])


def micro_batches(gen, count, size):
    return [pad_sequence([sentence(gen) for _ in range(size)], batch_first=True, padding_value=PAD) for _ in range(count)]


def summed_loss(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD, reduction="sum")


def main():
    torch.manual_seed(20)
    gen = torch.Generator().manual_seed(21)
    data = micro_batches(gen, 24, 8)
    model = LM()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        total, tokens_seen = 0.0, 0
        for start in range(0, len(data), GROUP):
            group = data[start : start + GROUP]
            n_tokens = sum((t[:, 1:] != PAD).sum().item() for t in group)
            opt.zero_grad()
            for tokens in group:
                loss = summed_loss(model, tokens) / n_tokens
                loss.backward()
                total += loss.item() * n_tokens
            opt.step()
            tokens_seen += n_tokens
        print(f"epoch {epoch}: loss per token {total / tokens_seen:.4f}")


if __name__ == "__main__":
    main()
