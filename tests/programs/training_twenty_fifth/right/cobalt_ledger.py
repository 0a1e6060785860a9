"""Causal LM trained on documents of very different length, with gradient accumulation and a resumable loop."""
import io
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, PAD, IGNORE = 14, 0, -100


def make_document(rng):
    """An arithmetic progression (mod 13) of random step and length; a few symbols are corrupted."""
    start, step, length = rng.randrange(13), rng.randrange(1, 6), rng.choice([4, 6, 8, 12, 20, 32])
    doc = [1 + (start + i * step) % 13 for i in range(length)]
    return [rng.randrange(1, VOCAB) if rng.random() < 0.03 else s for s in doc]


def collate(docs):
    width = max(map(len, docs))
    ids = torch.tensor([d + [PAD] * (width - len(d)) for d in docs])
    inputs, targets = ids[:, :-1], ids[:, 1:].clone()
    targets[targets == PAD] = IGNORE
    return inputs, targets


class DilatedLM(nn.Module):
    def __init__(self, dim=32, dilations=(1, 2, 4)):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 2 * dim, 2, dilation=d) for d in dilations)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in dilations)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        h = self.embed(ids)
        for conv, norm in zip(self.convs, self.norms):
            z = F.pad(norm(h).transpose(1, 2), (conv.dilation[0], 0))
            h = h + F.glu(conv(z), dim=1).transpose(1, 2)
        return self.out(h)


class Trainer:
    def __init__(self, docs, micro=4, accum=4, lr=4e-3, total=120, warmup=10):
        self.docs, self.micro, self.accum = docs, micro, accum
        self.model = DilatedLM()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.LambdaLR(
            self.opt, lambda s: min((s + 1) / warmup, 0.5 + 0.5 * math.cos(math.pi * s / total)))
        self.rng, self.step = random.Random(8), 0

    def update(self):
        window = [collate(self.rng.sample(self.docs, self.micro)) for _ in range(self.accum)]
        n_tokens = sum((t != IGNORE).sum() for _, t in window)
        total = 0.0
        for inputs, targets in window:
            logits = self.model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")
            loss.backward()
            total += loss.item()
        for p in self.model.parameters():
            p.grad.div_(n_tokens)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.opt.zero_grad()
        self.sched.step()
        self.step += 1
        return total / n_tokens.item()

    def save(self):
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
                    "step": self.step, "rng": self.rng.getstate()}, buffer)
        return buffer.getvalue()

    def load(self, blob):
        state = torch.load(io.BytesIO(blob))
        for name in ("model", "opt", "sched"):
            getattr(self, name).load_state_dict(state[name])
        self.step = state["step"]
        self.rng.setstate(state["rng"])

    @torch.no_grad()
    def perplexity(self, docs):
        inputs, targets = collate(docs)
        return F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORE).exp().item()


def main():
    torch.manual_seed(41)
    rng = random.Random(42)
    docs, held_out = [make_document(rng) for _ in range(1500)], [make_document(rng) for _ in range(200)]
    trainer = Trainer(docs)
    while trainer.step < 60:
        loss = trainer.update()
        if trainer.step % 20 == 0:
            print(f"step {trainer.step} loss {loss:.3f} held-out ppl {trainer.perplexity(held_out):.3f}")
    blob = trainer.save()
    resumed = Trainer(docs)
    resumed.load(blob)
    while resumed.step < 120:
        loss = resumed.update()
        if resumed.step % 20 == 0:
            print(f"step {resumed.step} loss {loss:.3f} held-out ppl {resumed.perplexity(held_out):.3f}")


if __name__ == "__main__":
    main()
