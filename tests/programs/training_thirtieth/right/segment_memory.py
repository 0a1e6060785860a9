"""Pretrain a small segment recurrent language model with cached memory, tied embedding and an average of its weights."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, SEGMENT, MEMORY, STREAMS = 26, 32, 8, 8, 16


def make_stream(length, generator):
    """Every word repeats the word of ten steps before or follows a bigram table."""
    table = torch.softmax(4.0 * torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(3)), dim=-1)
    words = [torch.randint(VOCAB, (STREAMS,), generator=generator) for _ in range(10)]
    while len(words) < length:
        follow = torch.multinomial(table[words[-1]], 1, generator=generator).squeeze(1)
        copy_old = torch.rand(STREAMS, generator=generator) < 0.5
        words.append(torch.where(copy_old, words[-10], follow))
    return torch.stack(words, dim=1)


class MemoryBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.query, self.key, self.value = (nn.Linear(DIM, DIM, bias=False) for _ in range(3))
        self.distance = nn.Parameter(torch.zeros(SEGMENT + MEMORY))
        self.feed = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x, memory):
        seen = self.norm(torch.cat([memory, x], dim=1))
        q, k, v = self.query(self.norm(x)), self.key(seen), self.value(seen)
        here, there = torch.arange(x.size(1)) + memory.size(1), torch.arange(seen.size(1))
        lag = here[:, None] - there[None, :]
        scores = q @ k.transpose(1, 2) * DIM**-0.5 + self.distance[lag.clamp(min=0)]
        scores = scores.masked_fill(lag < 0, float("-inf"))
        x = x + scores.softmax(dim=-1) @ v
        return x + self.feed(x)


class SegmentLM(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(MemoryBlock() for _ in range(layers))
        self.out = nn.Linear(DIM, VOCAB)
        self.out.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.2)

    def forward(self, ids, memories):
        x, cached = self.embed(ids), []
        for block, memory in zip(self.blocks, memories):
            cached.append(torch.cat([memory, x.detach()], dim=1)[:, -MEMORY:])
            x = block(x, memory)
        return self.out(x), cached

    def empty_memory(self, batch):
        return [torch.zeros(batch, 0, DIM) for _ in self.blocks]


def parameter_groups(model, decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


@torch.no_grad()
def update_average(average, model, step):
    momentum = min(0.95, (1 + step) / (10 + step))
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.lerp_(fast, 1 - momentum)


def segments(stream):
    for start in range(0, stream.size(1) - SEGMENT, SEGMENT):
        yield stream[:, start:start + SEGMENT], stream[:, start + 1:start + SEGMENT + 1]


@torch.no_grad()
def evaluate(model, stream):
    memories, losses = model.empty_memory(stream.size(0)), []
    for ids, targets in segments(stream):
        logits, memories = model(ids, memories)
        losses.append(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    return torch.stack(losses).mean().item()


torch.manual_seed(17)
generator = torch.Generator().manual_seed(30)
test_stream = make_stream(30 * SEGMENT + 1, generator)
model = SegmentLM()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=1e-2)

step = 0
for epoch in range(2):
    train_stream = make_stream(50 * SEGMENT + 1, generator)
    memories, total = model.empty_memory(STREAMS), 0.0
    for ids, targets in segments(train_stream):
        logits, memories = model(ids, memories)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        update_average(average, model, step)
        step, total = step + 1, total + loss.item()
    print(f"epoch {epoch + 1}  loss {total / 50:.3f}")
print(f"test loss {evaluate(model, test_stream):.3f}  of the average {evaluate(average, test_stream):.3f}")
