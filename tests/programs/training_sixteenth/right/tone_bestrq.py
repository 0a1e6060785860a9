"""BEST-RQ pretraining (Chiu et al., 2022) on synthetic log-mel frames.

The targets come from a random projection and a random codebook; masked frames are to be classified.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

MELS, FRAMES, CODES, WIDTH = 16, 32, 32, 48


def utterances(n):
    """Sequences of phone-like segments: each has a spectral envelope and lasts a few frames."""
    phones = torch.randn(10, MELS) * 1.5
    follow = torch.stack([torch.randperm(10) for _ in range(2)])
    out = torch.zeros(n, FRAMES, MELS)
    for i in range(n):
        phone, t = int(torch.randint(0, 10, (1,))), 0
        while t < FRAMES:
            stay = int(torch.randint(5, 9, (1,)))
            out[i, t:t + stay] = phones[phone]
            phone = int(follow[int(torch.rand(1) < 0.2), phone])
            t += stay
    return out + 0.1 * torch.randn(n, FRAMES, MELS)


class RandomProjectionQuantizer(nn.Module):
    def __init__(self, dim, code_dim=8):
        super().__init__()
        projection = torch.empty(dim, code_dim)
        nn.init.xavier_normal_(projection)
        self.projection = nn.Parameter(projection, requires_grad=False)
        self.register_buffer("codebook", F.normalize(torch.randn(CODES, code_dim), dim=1))

    @torch.no_grad()
    def forward(self, x):
        code = F.normalize(x @ self.projection, dim=-1)
        return (code @ self.codebook.t()).argmax(dim=-1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MELS, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(FRAMES, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CODES)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.inp(x) + self.position)))


def span_mask(n, start_prob=0.08, span=4):
    """True at masked frames; spans may overlap."""
    starts = torch.rand(n, FRAMES) < start_prob
    mask = starts.clone()
    for s in range(1, span):
        mask[:, s:] |= starts[:, :-s]
    mask[:, FRAMES // 2] = True
    return mask


def masked_loss(encoder, x, mask, quantizer):
    target = quantizer(x).masked_fill(~mask, -100)
    corrupted = torch.where(mask.unsqueeze(-1), 0.1 * torch.randn_like(x), x)
    logits = encoder(corrupted)
    loss = F.cross_entropy(logits.transpose(1, 2), target)
    hits = (logits.argmax(-1) == target)[mask].float().mean()
    return loss, hits.item()


data = utterances(640)
data = (data - data.mean((0, 1))) / data.std((0, 1))
train, valid = data[:512], data[512:]
quantizer, encoder = RandomProjectionQuantizer(MELS).eval(), Encoder()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3, weight_decay=0.01)
warmup = 30
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / warmup, (warmup / (s + 1)) ** 0.5))

for epoch in range(12):
    encoder.train()
    total = 0.0
    for x in train[torch.randperm(len(train))].split(32):
        loss, _ = masked_loss(encoder, x, span_mask(len(x)), quantizer)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    if epoch % 3 == 2:
        encoder.eval()
        with torch.no_grad():
            valid_loss, hits = masked_loss(encoder, valid, span_mask(len(valid)), quantizer)
        print(f"epoch {epoch + 1:2d}  train {total / 16:.3f}  valid {valid_loss:.3f}  masked accuracy {hits:.3f}")
used = quantizer(valid).unique().numel()
print(f"codes used {used} of {CODES}")
