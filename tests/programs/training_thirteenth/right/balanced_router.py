"""Mixture-of-experts tagger whose experts are balanced without an auxiliary loss.

Each expert has a selection bias that only takes part in choosing experts; after every step the biases of
overloaded experts go down by a fixed amount and those of underloaded ones go up. The weights that mix
the chosen experts come from the scores alone.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)
VOCAB, DIM, TAGS, EXPERTS, TOP_K, LENGTH, PAD = 150, 32, 9, 8, 2, 12, 0


class RoutedBlock(nn.Module):
    def __init__(self, dim, hidden=32):
        super().__init__()
        self.router = nn.Linear(dim, EXPERTS, bias=False)
        self.w_in = nn.Parameter(torch.randn(EXPERTS, dim, hidden) / dim ** 0.5)
        self.w_out = nn.Parameter(torch.randn(EXPERTS, hidden, dim) / hidden ** 0.5)
        self.register_buffer("selection_bias", torch.zeros(EXPERTS))
        self.register_buffer("counts", torch.zeros(EXPERTS), persistent=False)

    def forward(self, x, keep):
        scores = torch.sigmoid(self.router(x))
        with torch.no_grad():
            chosen = (scores + self.selection_bias).topk(TOP_K, dim=-1).indices
            if self.training:
                self.counts += torch.bincount(chosen[keep].flatten(), minlength=EXPERTS)
        picked = scores.gather(-1, chosen)
        weights = picked / picked.sum(-1, keepdim=True)
        mix = torch.zeros_like(scores).scatter(-1, chosen, weights)
        # small enough here that all experts can run on all tokens; the unchosen ones get weight zero
        hidden = F.gelu(torch.einsum("btd,edh->bteh", x, self.w_in))
        return torch.einsum("bteh,ehd,bte->btd", hidden, self.w_out, mix)

    @torch.no_grad()
    def rebalance(self, rate):
        self.selection_bias += rate * torch.sign(self.counts.mean() - self.counts)
        self.counts.zero_()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.context = nn.GRU(DIM, DIM // 2, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.block = RoutedBlock(DIM)
        self.out = nn.Linear(DIM, TAGS)

    def forward(self, tokens):
        keep = tokens != PAD
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(tokens), keep.sum(1), batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.context(packed)[0], batch_first=True, total_length=LENGTH)
        return self.out(h + self.block(self.norm(h), keep))


def make_sentences(n, rule, gen):
    """The tag of a word depends on its own class and on the class of the word before it."""
    words = torch.randint(1, VOCAB, (n, LENGTH), generator=gen)
    lengths = torch.randint(4, LENGTH + 1, (n, 1), generator=gen)
    classes = words % 7
    before = torch.cat([torch.zeros(n, 1, dtype=torch.long), classes[:, :-1]], dim=1)
    tags = rule[classes, before]
    past_end = torch.arange(LENGTH) >= lengths
    return words.masked_fill(past_end, PAD), tags.masked_fill(past_end, -100)


@torch.no_grad()
def tag_accuracy(model, tokens, tags):
    model.eval()
    right = model(tokens).argmax(-1) == tags
    model.train()
    return right[tags != -100].float().mean().item()


gen = torch.Generator().manual_seed(6)
rule = torch.randint(0, TAGS, (7, 7), generator=gen)
train_x, train_y = make_sentences(1500, rule, gen)
test_x, test_y = make_sentences(400, rule, gen)

model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
for step in range(240):
    pick = torch.randint(len(train_x), (48,))
    logits = model(train_x[pick])
    loss = F.cross_entropy(logits.flatten(0, 1), train_y[pick].flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    heaviest = (model.block.counts.max() / model.block.counts.mean()).item()
    model.block.rebalance(rate=0.01)
    if (step + 1) % 60 == 0:
        print(f"step {step + 1}: loss {loss.item():.3f}, heaviest expert {heaviest:.2f} times the mean")

print("selection bias:", [round(b, 3) for b in model.block.selection_bias.tolist()])
print(f"test tag accuracy {tag_accuracy(model, test_x, test_y):.3f}")
