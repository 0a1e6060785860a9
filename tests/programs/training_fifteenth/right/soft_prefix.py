"""Prompt tuning of a frozen transformer with a reparametrised prompt.

The model is pretrained on three interleaved tasks, each announced by a task token: name the symbol that is hidden among
fillers, its successor, or the one after. A soft prompt must then find out from examples which task is meant. The prompt
is written by a small MLP during training; the MLP is thrown away at the end and only the prompt vectors are kept.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)
SYMBOLS, FILLERS, TASKS, LENGTH, WIDTH, PROMPT = 8, 4, 3, 5, 32, 3
TASK = SYMBOLS + FILLERS  # the first task token


def make_batch(n, shift, gen):
    """Fillers with one symbol at a random place."""
    tokens = torch.randint(SYMBOLS, SYMBOLS + FILLERS, (n, LENGTH), generator=gen)
    place = torch.randint(0, LENGTH, (n, 1), generator=gen)
    symbol = torch.randint(0, SYMBOLS, (n, 1), generator=gen)
    return tokens.scatter(1, place, symbol), (symbol.squeeze(1) + shift) % SYMBOLS


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TASK + TASKS, WIDTH)
        self.place = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, tokens, prefix):
        """`prefix`: (n, p, width) vectors that stand in front of the tokens."""
        x = torch.cat([prefix, self.embed(tokens) + self.place], dim=1)
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


class PromptEncoder(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_buffer("seed_vectors", start)
        self.net = nn.Sequential(nn.Linear(WIDTH, 64), nn.Tanh(), nn.Linear(64, WIDTH))
        nn.init.zeros_(self.net[2].weight)
        nn.init.zeros_(self.net[2].bias)

    def forward(self):
        return self.seed_vectors + self.net(self.seed_vectors)


def task_prefix(model, shift, n):
    return model.embed(torch.full((n, PROMPT), TASK + shift))


gen = torch.Generator().manual_seed(3)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(360):
    shift = step % TASKS
    tokens, answer = make_batch(64, shift, gen)
    loss = F.cross_entropy(model(tokens, task_prefix(model, shift, 64)), answer) / TASKS
    loss.backward()
    if shift == TASKS - 1:  # one update for each round of tasks
        optimizer.step()
        optimizer.zero_grad()
print(f"pretraining loss {TASKS * loss.item():.3f}")

model.eval().requires_grad_(False)
with torch.no_grad():
    start = task_prefix(model, 0, 1)[0] + 0.1 * torch.randn(PROMPT, WIDTH)
encoder = PromptEncoder(start)
optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
for step in range(120):
    tokens, answer = make_batch(64, 2, gen)
    loss = F.cross_entropy(model(tokens, encoder().expand(64, -1, -1)), answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"prompt step {step:3d}  loss {loss.item():.3f}")

prompt = encoder().detach().clone()
tokens, answer = make_batch(1000, 2, gen)
with torch.no_grad():
    before = (model(tokens, start.expand(1000, -1, -1)).argmax(1) == answer).float().mean().item()
    after = (model(tokens, prompt.expand(1000, -1, -1)).argmax(1) == answer).float().mean().item()
print(f"task from examples: start prompt {before:.3f}, tuned prompt {after:.3f}")
