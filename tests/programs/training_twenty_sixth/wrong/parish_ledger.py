"""Tag the entries of an old account book: is an entry above the average of its own page?"""
import torch
from torch import nn
import torch.nn.functional as F

PAD = 0
N_AMOUNTS = 30  # amounts are binned into tokens 1..N_AMOUNTS
MAX_LEN = 20


def make_pages(n, gen):
    ids = torch.full((n, MAX_LEN), PAD)
    tags = torch.full((n, MAX_LEN), -100)
    for i in range(n):
        length = int(torch.randint(6, MAX_LEN, (1,), generator=gen))
        # rich and poor parishes: the whole page sits around a different level
        level = torch.randint(5, N_AMOUNTS - 3, (1,), generator=gen)
        amounts = level + torch.randint(-6, 7, (length,), generator=gen)
        amounts = amounts.clamp(1, N_AMOUNTS)
        ids[i, :length] = amounts
        tags[i, :length] = (amounts.float() > amounts.float().mean()).long()
    return ids, tags


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Tagger(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(N_AMOUNTS + 1, dim, padding_idx=PAD)
        self.pos = nn.Parameter(0.02 * torch.randn(MAX_LEN, dim))
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        padding = ids.eq(PAD)
        mask = padding[:, None, None, :]  # (B, 1, 1, T), broadcast over heads and queries
        x = self.embed(ids) + self.pos[: ids.size(1)]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


@torch.no_grad()
def tag_accuracy(model, ids, tags):
    model.eval()
    pred = model(ids).argmax(dim=-1)
    valid = tags != -100
    return (pred[valid] == tags[valid]).float().mean().item()


def main(steps=200, batch_size=48, lr=3e-3, seed=8):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    ids, tags = make_pages(1200, gen)
    test_ids, test_tags = make_pages(250, gen)

    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=steps)
    for step in range(1, steps + 1):
        model.train()
        pick = torch.randint(0, len(ids), (batch_size,), generator=gen)
        logits = model(ids[pick])
        loss = F.cross_entropy(logits.flatten(0, 1), tags[pick].flatten(), ignore_index=-100)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}  test accuracy {tag_accuracy(model, test_ids, test_tags):.3f}")
    return model, tag_accuracy(model, test_ids, test_tags)


if __name__ == "__main__":
    model, test_acc = main()
    print(f"final tag accuracy {test_acc:.3f}")
