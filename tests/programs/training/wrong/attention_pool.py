"""Sequence classification with additive attention pooling."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionPool(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.proj = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, states):
        energy = self.score(torch.tanh(self.proj(states)))
        weights = F.softmax(energy, dim=-1)
        return (weights * states).sum(dim=1)


class Tagger(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.pool = AttentionPool(dim, 16)
        self.out = nn.Linear(dim, classes)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.out(self.pool(states))


def make_corpus(n, length, vocab):
    tokens = torch.randint(4, vocab, (n, length))
    labels = torch.randint(4, (n,))
    spot = torch.randint(length, (n,))
    tokens[torch.arange(n), spot] = labels
    return tokens, labels


def main():
    torch.manual_seed(17)
    tokens, labels = make_corpus(512, 12, 40)
    model = Tagger(40, 24, 4)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        correct = 0
        for idx in torch.randperm(len(tokens)).split(64):
            logits = model(tokens[idx])
            loss = F.cross_entropy(logits, labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            correct += (logits.argmax(1) == labels[idx]).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} train acc {correct / len(tokens):.3f}")
    return model


if __name__ == "__main__":
    main()
