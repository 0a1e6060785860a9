"""Route incoming memos to departments: masked-token pretraining on all memos, then fine-tuning on few labels."""
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

PAD, MASK, FIRST_WORD = 0, 1, 2


@dataclass
class Setup:
    vocab: int = 130
    topics: int = 8
    length: int = 12
    dim: int = 48
    unlabelled: int = 1536
    labelled: int = 96
    test: int = 400


def write_memos(n, s, gen):
    topic = torch.randint(0, s.topics, (n,), generator=gen)
    width = (s.vocab - FIRST_WORD) // s.topics
    own = FIRST_WORD + topic.unsqueeze(1) * width + torch.randint(0, width, (n, s.length), generator=gen)
    common = torch.randint(FIRST_WORD, s.vocab, (n, s.length), generator=gen)
    tokens = torch.where(torch.rand(n, s.length, generator=gen) < 0.5, own, common)
    lengths = torch.randint(s.length // 2, s.length + 1, (n, 1), generator=gen)
    return tokens.masked_fill(torch.arange(s.length) >= lengths, PAD), topic


class Encoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.words = nn.Embedding(s.vocab, s.dim, padding_idx=PAD)
        self.places = nn.Embedding(s.length, s.dim)
        layer = nn.TransformerEncoderLayer(s.dim, 4, 2 * s.dim, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight
        return self.layers(x, src_key_padding_mask=tokens == PAD)


class MaskedMemoModel(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.encoder = Encoder(s)
        self.lm_head = nn.Linear(s.dim, s.vocab)

    def forward(self, tokens):
        return self.lm_head(self.encoder(tokens))


class MemoRouter(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.backbone = Encoder(s)
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(s.dim, s.topics))

    def forward(self, tokens):
        real = (tokens != PAD).unsqueeze(-1)
        pooled = (self.backbone(tokens) * real).sum(1) / real.sum(1)
        return self.classifier(pooled)


def pretrain(s, tokens, path, epochs=8):
    model = MaskedMemoModel(s)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        for batch in tokens[torch.randperm(len(tokens))].split(64):
            hide = (torch.rand(batch.shape) < 0.2) & (batch != PAD)
            logits = model(batch.masked_fill(hide, MASK))
            loss = F.cross_entropy(logits[hide], batch[hide])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretraining: masked-token loss {loss.item():.3f}")
    torch.save({"model": model.state_dict(), "dim": s.dim}, path)


def finetune(s, tokens, topic, path, epochs=12):
    model, checkpoint = MemoRouter(s), torch.load(path)
    model.load_state_dict(checkpoint["model"], strict=False)  # the heads differ
    print(f"initialized from {path.name} (dim {checkpoint['dim']})")
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for rows in torch.randperm(len(tokens)).split(16):
            loss = F.cross_entropy(model(tokens[rows]), topic[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"fine-tuning: loss {loss.item():.3f}")
    return model.eval()


setup = Setup()
torch.manual_seed(40)
gen = torch.Generator().manual_seed(2)
unlabelled, _ = write_memos(setup.unlabelled, setup, gen)
few_tokens, few_topics = write_memos(setup.labelled, setup, gen)
test_tokens, test_topics = write_memos(setup.test, setup, gen)
with tempfile.TemporaryDirectory() as folder:
    pretrain(setup, unlabelled, Path(folder) / "memo_mlm.pt")
    router = finetune(setup, few_tokens, few_topics, Path(folder) / "memo_mlm.pt")
with torch.no_grad():
    accuracy = (router(test_tokens).argmax(-1) == test_topics).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
