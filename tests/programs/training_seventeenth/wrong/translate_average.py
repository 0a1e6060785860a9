"""Word-for-word toy translation with reordering; the last checkpoints are averaged as in Vaswani et al. (2017)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

WORDS, LENGTH, DIM = 30, 6, 48
BOS = WORDS
STEPS, KEEP_FROM, KEEP_EVERY = 320, 220, 20

dictionary = torch.randperm(WORDS)


def sentence_pairs(n):
    source = torch.randint(WORDS, (n, LENGTH))
    # the target language puts neighbouring words the other way round
    target = dictionary[source].view(n, LENGTH // 2, 2).flip(-1).reshape(n, LENGTH)
    noise = torch.rand(n, LENGTH) < 0.15
    target = torch.where(noise, torch.randint(WORDS, (n, LENGTH)), target)
    return source, target


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source_embed = nn.Embedding(WORDS, DIM)
        self.target_embed = nn.Embedding(WORDS + 1, DIM)
        self.place = nn.Parameter(0.3 * torch.randn(LENGTH, DIM))
        self.encoder = nn.GRU(DIM, DIM // 2, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(DIM, DIM, batch_first=True)
        self.attention = nn.MultiheadAttention(DIM, 2, batch_first=True)
        self.out = nn.Linear(2 * DIM, WORDS)

    def forward(self, source, target):
        memory, _ = self.encoder(self.source_embed(source) + self.place)
        start = torch.full_like(target[:, :1], BOS)
        shifted = torch.cat([start, target[:, :-1]], dim=1)
        state, _ = self.decoder(self.target_embed(shifted) + self.place)
        context, _ = self.attention(state, memory, memory, need_weights=False)
        return self.out(torch.cat([state, context], dim=-1))


class CheckpointAverager:
    """Keeps the weights of several points of the run and gives their mean."""

    def __init__(self):
        self.kept = []

    def add(self, model):
        self.kept.append({name: value.detach() for name, value in model.state_dict().items()})

    def average(self):
        return {name: torch.stack([weights[name] for weights in self.kept]).mean(dim=0) for name in self.kept[0]}


def translation_loss(model, source, target):
    logits = model(source, target)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.05)


@torch.no_grad()
def evaluate(model, source, target):
    model.eval()
    logits = model(source, target)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten()).item()
    model.train()
    return loss


model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.98))
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 40))
averager = CheckpointAverager()
held_out = sentence_pairs(600)

for step in range(1, STEPS + 1):
    source, target = sentence_pairs(32)
    loss = translation_loss(model, source, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    if step >= KEEP_FROM and step % KEEP_EVERY == 0:
        averager.add(model)
    if step % 80 == 0:
        print(f"step {step:3d}  lr {warmup.get_last_lr()[0]:.4f}  train {loss.item():.3f}")

averaged = Translator()
averaged.load_state_dict(averager.average())
averaged_loss = evaluate(averaged, *held_out)
print(f"{len(averager.kept)} checkpoints averaged: held-out loss {averaged_loss:.4f}")
