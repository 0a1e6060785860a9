"""Segment-level recurrence (Transformer-XL style) on a long key-then-echo stream.

The stream is cut into short segments. A topic token appears at the start of each story of three segments, and every
segment ends with a question about the topic. The model keeps the hidden states of the earlier segments as memory, so
that it can answer also in the segments in which the topic was not said.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
TOPICS, FILLERS, SEGMENT, STORY, STORIES, WIDTH, MEM = 6, 6, 6, 3, 2, 40, 12
ASK = TOPICS + FILLERS
VOCAB = ASK + 1


def make_stories(n, gen):
    """n streams of STORIES stories, each STORY segments long; the target of a segment is the topic of its story."""
    stream = torch.randint(TOPICS, TOPICS + FILLERS, (n, STORIES * STORY, SEGMENT), generator=gen)
    topic = torch.randint(0, TOPICS, (n, STORIES), generator=gen)
    stream[:, ::STORY, 1] = topic
    stream[:, :, -1] = ASK
    return stream, topic.repeat_interleave(STORY, dim=1)


class MemoryLayer(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, memory):
        n, t, w = x.shape
        context = self.norm1(torch.cat([memory, x], dim=1))
        split = lambda z: z.view(n, -1, self.heads, w // self.heads).transpose(1, 2)
        k, v = self.kv(context).chunk(2, dim=-1)
        visible = torch.ones(t, context.shape[1], dtype=torch.bool).tril(diagonal=memory.shape[1])
        att = F.scaled_dot_product_attention(split(self.q(self.norm1(x))), split(k), split(v), attn_mask=visible)
        x = x + self.out(att.transpose(1, 2).reshape(n, t, w))
        return x + self.mlp(self.norm2(x))


class RecurrentLM(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(SEGMENT, WIDTH))
        self.layers = nn.ModuleList(MemoryLayer(WIDTH) for _ in range(layers))
        self.head = nn.Linear(WIDTH, TOPICS)

    def empty_memory(self, n):
        return [torch.zeros(n, 0, WIDTH) for _ in self.layers]

    def forward(self, tokens, memory):
        x = self.embed(tokens) + self.place
        fresh = []
        for layer, old in zip(self.layers, memory):
            fresh.append(torch.cat([old, x], dim=1)[:, :MEM])
            x = layer(x, old)
        return self.head(x[:, -1]), [m.detach() for m in fresh]


@torch.no_grad()
def evaluate(model, stream, topic):
    """Accuracy by the segment's place in the stream."""
    memory, scores = model.empty_memory(stream.shape[0]), []
    for s in range(stream.shape[1]):
        logits, memory = model(stream[:, s], memory)
        scores.append((logits.argmax(-1) == topic[:, s]).float().mean().item())
    return scores


gen = torch.Generator().manual_seed(21)
model = RecurrentLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(90):
    stream, topic = make_stories(48, gen)
    memory = model.empty_memory(stream.shape[0])
    total = 0.0
    for s in range(stream.shape[1]):
        logits, memory = model(stream[:, s], memory)
        loss = F.cross_entropy(logits, topic[:, s])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if step % 30 == 0:
        print(f"step {step:3d}  mean loss {total / stream.shape[1]:.3f}")

scores = evaluate(model, *make_stories(500, gen))
print("accuracy by segment", [round(s, 3) for s in scores])
