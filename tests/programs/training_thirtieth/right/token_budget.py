"""Translation with shared embeddings, micro batches normalised by tokens, a checkpointed decoder and averaged weights."""
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WORDS, PAD, BOS, EOS = 10, 0, 1, 2
VOCAB, DIM, LONGEST, WARMUP, KEEP = WORDS + 3, 32, 6, 15, 4


class Bitext:
    """Source sentences of varied length; the target renames the words and ends in EOS."""

    def __init__(self, generator):
        self.generator, self.lexicon = generator, torch.randperm(WORDS, generator=generator)

    def sample(self, count):
        lengths = torch.randint(3, LONGEST + 1, (count, 1), generator=self.generator)
        words = torch.randint(WORDS, (count, LONGEST), generator=self.generator)
        place = torch.arange(LONGEST + 1)
        source = (words + 3).masked_fill(place[:-1] >= lengths, PAD)
        target = F.pad(self.lexicon[words] + 3, (0, 1))
        target = target.masked_fill(place >= lengths, PAD).masked_fill(place == lengths, EOS)
        return source, target


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x, memory, mask):
        q, (k, v) = self.q(x), self.kv(memory).chunk(2, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.inner, self.cross = Attention(), Attention() if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(3 if cross else 2))
        self.feed = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.ReLU(), nn.Dropout(0.05), nn.Linear(2 * DIM, DIM))

    def forward(self, x, mask, memory=None, memory_mask=None):
        normed = self.norms[0](x)
        x = x + self.inner(normed, normed, mask)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory, memory_mask)
        return x + self.feed(self.norms[-1](x))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.place = nn.Embedding(LONGEST + 1, DIM)
        self.encoder, self.decoder = Layer(cross=False), Layer(cross=True)
        self.final = nn.LayerNorm(DIM)
        nn.init.normal_(self.embed.weight, std=DIM**-0.5)

    def vectors(self, ids):
        return DIM**0.5 * self.embed(ids) + self.place.weight[: ids.size(1)]

    def forward(self, source, target):
        shifted = F.pad(target[:, :-1], (1, 0), value=BOS)
        real = (source != PAD).unsqueeze(1)
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
        memory = self.encoder(self.vectors(source), real)
        state = checkpoint(self.decoder, self.vectors(shifted), causal, memory, real, use_reentrant=False)
        return F.linear(self.final(state), self.embed.weight)


def summed_loss(model, source, target):
    return F.cross_entropy(model(source, target).flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")


@torch.no_grad()
def evaluate(model, source, target):
    model.eval()
    loss = summed_loss(model, source, target).item() / (target != PAD).sum().item()
    model.train()
    return loss


def noam(step):
    return min((step + 1) / WARMUP, (WARMUP / (step + 1)) ** 0.5)


torch.manual_seed(23)
bitext = Bitext(torch.Generator().manual_seed(40))
test_source, test_target = bitext.sample(120)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-2, betas=(0.9, 0.98))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, noam)
snapshots = deque(maxlen=KEEP)

for update in range(50):
    optimizer.zero_grad()
    tokens, total = 0, 0.0
    for _ in range(2):
        source, target = bitext.sample(16)
        loss = summed_loss(model, source, target)
        loss.backward()
        tokens, total = tokens + (target != PAD).sum().item(), total + loss.item()
    for p in model.parameters():
        p.grad.div_(tokens)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if update % 10 == 9:
        print(f"update {update + 1:2d}  loss per token {total / tokens:.3f}")
    if update >= 46:
        snapshots.append({name: value.clone() for name, value in model.state_dict().items()})

last = evaluate(model, test_source, test_target)
model.load_state_dict({name: sum(s[name] for s in snapshots) / len(snapshots) for name in snapshots[0]})
print(f"test loss per token {last:.3f}  averaged weights {evaluate(model, test_source, test_target):.3f}")
