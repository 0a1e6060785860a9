"""Sequence tagger with dropout on the recurrent state."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, n_words=40, dim=12, hidden=16, n_tags=5, drop=0.25):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim)
        self.cell = nn.LSTMCell(dim, hidden)
        self.head = nn.Linear(hidden, n_tags)
        self.drop, self.hidden = drop, hidden

    def forward(self, words):
        x = self.embed(words)
        h = x.new_zeros(words.size(0), self.hidden)
        c = x.new_zeros(words.size(0), self.hidden)
        tags = []
        for t in range(words.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            tags.append(self.head(h))
            h = F.dropout(h, self.drop, self.training)
        return torch.stack(tags, dim=1)


def run_epoch(model, batches, optimizer):
    model.train()
    losses = []
    for words, tags in batches:
        scores = model(words)
        loss = F.cross_entropy(scores.reshape(-1, scores.size(-1)), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


if __name__ == "__main__":
    torch.manual_seed(11)
    batches = [(torch.randint(0, 40, (4, 6)), torch.randint(0, 5, (4, 6))) for _ in range(3)]
    tagger = Tagger()
    print(run_epoch(tagger, batches, torch.optim.Adam(tagger.parameters(), lr=1e-2)))
