"""LoRA fine-tuning of a small pretrained tagger on a second, noisier corpus.

A bidirectional token mixer is first trained on corpus A. For corpus B (other tag rules, a few corrupted documents with
very large feature values) only low-rank updates and the tag head are trained, with gradient clipping.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
FEATS, WIDTH, TAGS, LENGTH = 12, 32, 5, 16


def corpus(n, rule, gen, outliers=0.0):
    x = torch.randn(n, LENGTH, FEATS, generator=gen)
    neighbour = torch.roll(x, 1, dims=1)
    tags = (x @ rule[0] + neighbour @ rule[1]).argmax(-1)
    broken = torch.rand(n, generator=gen) < outliers
    x[broken] = x[broken] * 40.0
    tags[broken] = torch.randint(0, TAGS, (int(broken.sum()), LENGTH), generator=gen)
    return x, tags


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATS, WIDTH)
        self.left = nn.Linear(WIDTH, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, TAGS)

    def forward(self, x):
        h = F.relu(self.inp(x))
        h = h + F.relu(self.left(torch.roll(h, 1, dims=1)))
        h = h + F.relu(self.mix(h))
        return self.head(h)


def add_lora(model):
    model.requires_grad_(False)
    model.inp = LoRALinear(model.inp)
    model.left = LoRALinear(model.left)
    model.mix = LoRALinear(model.mix)
    model.head.requires_grad_(True)
    return model


def accuracy(model, x, tags):
    with torch.no_grad():
        return (model(x).argmax(-1) == tags).float().mean().item()


def train(model, params, data, steps, lr, gen, max_norm=1.0):
    x, tags = data
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for step in range(steps):
        rows = torch.randint(0, x.shape[0], (32,), generator=gen)
        loss = F.cross_entropy(model(x[rows]).flatten(0, 1), tags[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, max_norm)
        optimizer.step()
        if step % 200 == 0:
            print(f"  step {step:4d}  loss {loss.item():.3f}")


gen = torch.Generator().manual_seed(5)
rule_a = torch.randn(2, FEATS, TAGS, generator=gen)
rule_b = rule_a + 0.8 * torch.randn(2, FEATS, TAGS, generator=gen)
corpus_a = corpus(1500, rule_a, gen)
corpus_b = corpus(800, rule_b, gen, outliers=0.02)
test_b = corpus(400, rule_b, gen)

model = Tagger()
print("pretraining on corpus A")
train(model, list(model.parameters()), corpus_a, 600, 0.05, gen)
print(f"corpus B before tuning: {accuracy(model, *test_b):.3f}")

model = add_lora(model)
trainable = filter(lambda p: p.requires_grad, model.parameters())
print("tuning on corpus B")
train(model, trainable, corpus_b, 600, 0.05, gen)
final_acc = accuracy(model, *test_b)
print(f"corpus B after tuning:  {final_acc:.3f}")
