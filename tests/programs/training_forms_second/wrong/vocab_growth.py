import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)


class TagModel(nn.Module):
    def __init__(self, vocab, dim, tags):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        h, _ = self.rnn(self.words(ids))
        return self.out(h)


class KeepRows:
    def __init__(self, parameter, rows):
        self.parameter = parameter
        self.rows = rows

    def after_backward(self):
        if self.parameter.grad is not None:
            self.parameter.grad.index_fill_(0, self.rows, 0.0)


class Runner:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks

    def step(self, ids, tags):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(ids).flatten(0, 1), tags.flatten())
        loss.backward()
        for cb in self.callbacks:
            cb.after_backward()
        self.optimizer.step()
        return loss.item()


old, new, dim, tags = 120, 30, 24, 5
pretrained = torch.randn(old, dim)
model = TagModel(old + new, dim, tags)
with torch.no_grad():
    model.words.weight[:old] = pretrained

table = model.words.weight
rest = [p for p in model.parameters() if p is not table]
optimizer = torch.optim.AdamW([
    {"params": [table], "weight_decay": 0.1},
    {"params": rest, "weight_decay": 0.1},
], lr=1e-2)
runner = Runner(model, optimizer, [KeepRows(table, torch.arange(old))])

tag_of = torch.randint(tags, (old + new,))
for step in range(120):
    ids = torch.randint(old + new, (16, 12))
    loss = runner.step(ids, tag_of[ids])
    if step % 30 == 29:
        print(f"step {step + 1}: loss {loss:.4f}")
print("norms", table[:old].norm().item(), table[old:].norm().item())
