"""Language model with tied input and output embeddings."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TiedLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.normal_(self.embed.weight, std=0.1)
        for name, p in self.rnn.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(p)
            else:
                nn.init.zeros_(p)
        self.head.weight = nn.Parameter(0.1 * torch.randn(self.head.out_features, self.head.in_features))

    def forward(self, tokens):
        h, _ = self.rnn(self.embed(tokens))
        return self.head(h)


def markov_text(n_tokens, vocab, gen):
    transition = torch.softmax(3 * torch.randn(vocab, vocab, generator=gen), dim=1)
    seq = [0]
    for _ in range(n_tokens - 1):
        seq.append(int(torch.multinomial(transition[seq[-1]], 1, generator=gen)))
    return torch.tensor(seq)


def chunks(text, length):
    n = (len(text) - 1) // length
    x = text[: n * length].view(n, length)
    y = text[1 : n * length + 1].view(n, length)
    return x, y


def main():
    torch.manual_seed(149)
    gen = torch.Generator().manual_seed(150)
    vocab = 25
    x, y = chunks(markov_text(3000, vocab, gen), 15)
    model = TiedLM(vocab, 24)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for idx in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(model(x[idx]).reshape(-1, vocab), y[idx].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch}: perplexity {torch.tensor(total / len(x)).exp().item():.2f}")
    return model


if __name__ == "__main__":
    main()
