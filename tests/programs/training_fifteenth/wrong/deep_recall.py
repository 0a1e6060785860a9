"""A deep causal transformer with activation checkpointing on an associative recall task.

Sequences hold key-value pairs, then a query key; the model must name the value that belongs to the key. The blocks are
checkpointed so that only the block inputs are kept for the backward pass.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)
KEYS, VALUES, PAIRS, WIDTH, LAYERS = 8, 6, 4, 32, 3


def make_batch(n, gen):
    keys = torch.argsort(torch.rand(n, KEYS, generator=gen), dim=1)[:, :PAIRS]
    values = torch.randint(0, VALUES, (n, PAIRS), generator=gen)
    asked = torch.randint(0, PAIRS, (n, 1), generator=gen)
    pair_tokens = keys * VALUES + values
    query = KEYS * VALUES + keys.gather(1, asked)
    return torch.cat([pair_tokens, query], dim=1), values.gather(1, asked).squeeze(1)


class Block(nn.Module):
    def __init__(self, width, heads, drop):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * width, width))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(att.transpose(1, 2).reshape(n, t, w)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Recall(nn.Module):
    def __init__(self, drop=0.4):
        super().__init__()
        self.embed = nn.Embedding(KEYS * VALUES + KEYS, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(PAIRS + 1, WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH, 4, drop) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VALUES)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for block in self.blocks:
            if self.training:
                # activations of a block are not kept; the light settings cut the overhead per block
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        return self.head(self.norm(x[:, -1]))


def evaluate(model, tokens, answers):
    model.eval()
    with torch.no_grad():
        logits = model(tokens)
    model.train()
    return F.cross_entropy(logits, answers).item(), (logits.argmax(-1) == answers).float().mean().item()


gen = torch.Generator().manual_seed(9)
test_tokens, test_answers = make_batch(1000, gen)

model = Recall()
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=2e-3)
STEPS = 250
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 30) * (1 - s / STEPS))

for step in range(STEPS):
    tokens, answers = make_batch(64, gen)
    loss = F.cross_entropy(model(tokens), answers)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        print(f"step {step:4d}  loss {loss.item():.3f}")

test_loss, test_acc = evaluate(model, test_tokens, test_answers)
print(f"test loss {test_loss:.3f}  accuracy {test_acc:.3f}")
