"""Supervised fine-tuning of a small chat model on "count from X, N times" instructions."""
import math
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


class Tokenizer:
    """Digits 0-9, then the special tokens. Like GPT-2, there is no dedicated padding token."""

    def __init__(self):
        self.bos_id, self.sep_id, self.eos_id = 10, 11, 12
        self.pad_id = self.eos_id
        self.vocab_size = 13

    def encode(self, start, count):
        prompt = [self.bos_id, start, count, self.sep_id]
        answer = [(start + i) % 10 for i in range(count)] + [self.eos_id]
        return prompt, answer


@dataclass
class Collator:
    tok: Tokenizer
    ignore_index: int = -100

    def __call__(self, examples):
        width = max(len(p) + len(a) for p, a in examples)
        ids = torch.full((len(examples), width), self.tok.pad_id)
        for row, (prompt, answer) in enumerate(examples):
            ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        labels = ids.clone()
        labels[labels == self.tok.pad_id] = self.ignore_index
        for row, (prompt, _) in enumerate(examples):
            labels[row, : len(prompt)] = self.ignore_index  # only the answer is supervised
        return {"input_ids": ids, "labels": labels}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class ChatLM(nn.Module):
    def __init__(self, vocab_size, dim=32, depth=2, heads=4, max_len=24):
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size, bias=False)

    def forward(self, input_ids, labels=None):
        pos = torch.arange(input_ids.shape[1])
        logits = self.head(self.norm(self.blocks(self.tok_emb(input_ids) + self.pos_emb(pos))))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return logits, loss


def token_accuracy(model, batch):
    logits, loss = model(**batch)
    target = batch["labels"][:, 1:]
    hit = (logits[:, :-1].argmax(-1) == target)[target != -100]
    return loss.item(), hit.float().mean().item()


def main():
    random.seed(7)
    torch.manual_seed(7)
    tok = Tokenizer()
    collate = Collator(tok)
    pairs = [tok.encode(s, n) for s in range(10) for n in range(1, 10)]
    random.shuffle(pairs)
    train, held_out = pairs[:76], pairs[76:]
    model = ChatLM(tok.vocab_size)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    steps = 300
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min(1.0, (s + 1) / 30) * 0.5 * (1 + math.cos(math.pi * s / steps)))
    for step in range(steps):
        _, loss = model(**collate(random.sample(train, 32)))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 100 == 99:
            with torch.no_grad():
                val, acc = token_accuracy(model, collate(held_out))
            print(f"step {step + 1} train {loss.item():.4f} val {val:.4f} answer-token acc {acc:.3f}")
    return model, tok


if __name__ == "__main__":
    main()
