"""Adapt a small pretrained character model to a new domain with low-rank adapters, merged for fast inference."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
VOCAB, CONTEXT, WIDTH = 16, 24, 32


class LoRALinear(nn.Linear):
    def __init__(self, fan_in, fan_out, rank=4, alpha=8.0):
        super().__init__(fan_in, fan_out)
        self.lora_a = nn.Parameter(torch.randn(rank, fan_in) * fan_in**-0.5)
        self.lora_b = nn.Parameter(torch.zeros(fan_out, rank))
        self.scaling = alpha / rank
        self.merged = False

    def delta(self):
        return (self.lora_b @ self.lora_a).detach() * self.scaling

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.weight.data -= self.delta()
            self.merged = False
        elif not mode:
            self.weight.data += self.delta()
            self.merged = True
        return self

    def forward(self, x):
        out = super().forward(x)
        if not self.merged:
            out = out + (x @ self.lora_a.t()) @ self.lora_b.t() * self.scaling
        return out


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = LoRALinear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), LoRALinear(WIDTH, WIDTH)
        self.up, self.down = LoRALinear(WIDTH, 4 * WIDTH), LoRALinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.norm1(x)
        x = x + F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h), is_causal=True)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        x = self.embed(ids) + self.pos.weight[: ids.size(1)]
        return self.head(self.norm(self.blocks(x)))


def corpus(table, count):
    ids = [torch.randint(0, VOCAB, (count,))]
    for _ in range(CONTEXT):
        ids.append(torch.multinomial(table[ids[-1]], 1).squeeze(1))
    return torch.stack(ids, dim=1)


def lm_loss(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def perplexity(model, ids):
    model.eval()
    return lm_loss(model, ids).exp().item()


@torch.no_grad()
def sample(model, length=12):
    model.eval()
    ids = torch.zeros(1, 1, dtype=torch.long)
    for _ in range(length):
        ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(-1), 1)], dim=1)
    return "".join(chr(97 + i) for i in ids[0].tolist())


def fit(model, data, epochs, lr, lora, valid=None):
    for name, p in model.named_parameters():
        p.requires_grad_(("lora_" in name) == lora)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)
    for epoch in range(epochs):
        model.train()
        for batch in data[torch.randperm(len(data))].split(64):
            optimizer.zero_grad()
            lm_loss(model, batch).backward()
            optimizer.step()
        if valid is not None:
            print(f"epoch {epoch} perplexity {perplexity(model, valid):.3f} sample {sample(model)}")


general, domain = [torch.softmax(2.5 * torch.randn(VOCAB, VOCAB), dim=1) for _ in range(2)]
model = CharModel()
fit(model, corpus(general, 512), epochs=12, lr=5e-3, lora=False)
base = {n: p.detach().clone() for n, p in model.named_parameters() if "lora_" not in n}
fit(model, corpus(domain, 512), epochs=6, lr=3e-3, lora=True, valid=corpus(domain, 128))
adapter = {n: p.detach().clone() for n, p in model.named_parameters() if "lora_" in n}
print(f"adapter holds {sum(p.numel() for p in adapter.values())} of {sum(p.numel() for p in model.parameters())} numbers")
