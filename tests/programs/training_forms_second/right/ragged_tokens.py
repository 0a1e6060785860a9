import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(44)

PAD = 0
ACCUMULATE = 4


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def corpus(sentences=256, vocab=80):
    follow = torch.randperm(vocab - 1) + 1
    lines = []
    for _ in range(sentences):
        n = int(torch.randint(3, 25, (1,)))
        ids = [int(torch.randint(1, vocab, (1,)))]
        for _ in range(n):
            ids.append(int(follow[ids[-1] - 1]) if torch.rand(1) < 0.8 else int(torch.randint(1, vocab, (1,))))
        lines.append(torch.tensor(ids))
    return lines


def collate(lines):
    ids = nn.utils.rnn.pad_sequence(lines, batch_first=True, padding_value=PAD)
    return ids[:, :-1], ids[:, 1:]


def groups(lines, size=4):
    order = torch.randperm(len(lines)).split(size)
    micro = [collate([lines[i] for i in part]) for part in order]
    return [micro[k:k + ACCUMULATE] for k in range(0, len(micro), ACCUMULATE)]


def train_group(model, optimizer, group):
    optimizer.zero_grad()
    total = 0.0
    tokens = sum((goal != PAD).sum() for _, goal in group)
    for ids, goal in group:
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), goal.flatten(), ignore_index=PAD, reduction="sum") / tokens
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


lines = corpus()
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
for epoch in range(6):
    losses = [train_group(model, optimizer, g) for g in groups(lines)]
    print(f"epoch {epoch + 1} loss {sum(losses) / len(losses):.4f}")
print("embedding norm", model.emb.weight.norm().item())
