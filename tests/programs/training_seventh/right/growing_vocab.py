"""Streaming tag prediction for short messages: the vocabulary grows while the model trains."""
import torch
import torch.nn.functional as F
from torch import nn

TAGS = 5


class TagModel(nn.Module):
    def __init__(self, rows, dim=16):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(rows, dim))
        self.mix = nn.Linear(dim, 32)
        self.out = nn.Linear(32, TAGS)

    def forward(self, ids, mask):
        e = self.table[ids] * mask[..., None]
        pooled = e.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.out(torch.relu(self.mix(pooled)))


def enlarge(model, opt, rows):
    """Gives the table `rows` rows and carries the Adam state over."""
    old = model.table
    extra = rows - len(old)
    if extra <= 0:
        return
    with torch.no_grad():
        fresh = old.mean(0) + 0.02 * torch.randn(extra, old.shape[1])
        new = nn.Parameter(torch.cat([old, fresh]))
    model.table = new
    for group in opt.param_groups:
        group["params"] = [new if p is old else p for p in group["params"]]
    state = opt.state.pop(old, None)
    if state:
        for key in ("exp_avg", "exp_avg_sq"):
            pad = torch.zeros(extra, old.shape[1])
            state[key] = torch.cat([state[key], pad])
        opt.state[new] = state


class Stream:
    """Messages whose words come from a lexicon that opens up over time; each word leans to one tag."""

    def __init__(self, words, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.lean = torch.randint(0, TAGS, (words,), generator=self.gen)

    def messages(self, n, open_words, length=7):
        tag = torch.randint(0, TAGS, (n,), generator=self.gen)
        words = torch.randint(0, open_words, (n, length), generator=self.gen)
        for slot in range(3):
            for k in range(TAGS):
                pool = (self.lean[:open_words] == k).nonzero().flatten()
                rows = (tag == k).nonzero().flatten()
                if len(pool) and len(rows):
                    pick = torch.randint(0, len(pool), (len(rows),), generator=self.gen)
                    words[rows, slot] = pool[pick]
        return words, tag


class Vocabulary:
    def __init__(self):
        self.rows = {}

    def encode(self, words, learn):
        ids = torch.zeros_like(words)
        mask = torch.zeros(words.shape)
        for i, message in enumerate(words.tolist()):
            for j, w in enumerate(message):
                if learn and w not in self.rows:
                    self.rows[w] = len(self.rows)
                if w in self.rows:
                    ids[i, j] = self.rows[w]
                    mask[i, j] = 1.0
        return ids, mask


def main(days=12, batches=25, batch=48):
    torch.manual_seed(4)
    stream, vocab = Stream(400, seed=9), Vocabulary()
    model = TagModel(rows=8)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for day in range(days):
        open_words = 60 + day * 30
        seen = 0.0
        for _ in range(batches):
            words, tag = stream.messages(batch, open_words)
            ids, mask = vocab.encode(words, learn=True)
            enlarge(model, opt, len(vocab.rows))
            loss = F.cross_entropy(model(ids, mask), tag)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += loss.item() / batches
        if day % 3 == 0:
            print(f"day {day:2d}  rows {len(model.table):4d}  loss {seen:.3f}")
    words, tag = stream.messages(600, 390)
    with torch.no_grad():
        hit = (model(*vocab.encode(words, learn=False)).argmax(1) == tag).float().mean()
    print(f"rows {len(model.table)}  accuracy {hit.item():.3f}")


if __name__ == "__main__":
    main()
