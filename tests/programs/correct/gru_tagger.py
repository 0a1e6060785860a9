"""A GRU that tags packed sequences; the optimizer has a group for the embedding and one for the rest."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.embedding = nn.Embedding(words, 6, padding_idx=0)
        self.rnn = nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.out = nn.Linear(16, tags)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(states)


torch.manual_seed(4)
tokens = torch.randint(1, 20, (6, 5))
lengths = torch.tensor([5, 3, 4, 5, 2, 1])
mask = torch.arange(5) < lengths[:, None]
tokens = tokens * mask
tags = (tokens % 3).masked_fill(~mask, -100)
model = Tagger(20, 3)
rest = [p for name, p in model.named_parameters() if not name.startswith("embedding")]
optimizer = torch.optim.Adam([{"params": model.embedding.parameters(), "lr": 1e-2}, {"params": rest}], lr=5e-3)
for epoch in range(3):
    logits = model(tokens, lengths)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    print(epoch, round(loss.item(), 3))
