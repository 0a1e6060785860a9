"""Language model whose output layer shares the embedding matrix."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TiedLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)
        self.reset_parameters()
        self.head.weight = self.embed.weight

    def reset_parameters(self):
        nn.init.normal_(self.embed.weight, std=0.1)
        nn.init.zeros_(self.head.bias)
        for name, p in self.rnn.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(p)
            else:
                nn.init.zeros_(p)

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return self.head(h)


def markov(n_tokens, vocab, gen):
    table = torch.softmax(3 * torch.randn(vocab, vocab, generator=gen), dim=1)
    seq = [0]
    for _ in range(n_tokens - 1):
        seq.append(int(torch.multinomial(table[seq[-1]], 1, generator=gen)))
    return torch.tensor(seq)


def main():
    torch.manual_seed(47)
    gen = torch.Generator().manual_seed(48)
    vocab, length = 20, 15
    text = markov(2401, vocab, gen)
    x, y = text[:-1].view(-1, length), text[1:].view(-1, length)
    model = TiedLM(vocab, 24)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for idx in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(model(x[idx]).flatten(0, 1), y[idx].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch}: perplexity {torch.tensor(total / len(x)).exp().item():.2f}")
    print("shared:", model.head.weight is model.embed.weight)


if __name__ == "__main__":
    main()
