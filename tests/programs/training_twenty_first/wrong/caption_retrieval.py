"""Two-tower retrieval between pictures and captions, trained with a symmetric InfoNCE loss.

Pictures and captions are two noisy views of the same latent scene.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

SCENE, VOCAB, CAPTION_LEN, EMBED = 12, 160, 10, 32
MAX_SCALE = 100.0

render = torch.randn(SCENE, 3 * 6 * 6) / math.sqrt(SCENE)
word_topics = torch.randn(SCENE, VOCAB) * 0.8


def make_pairs(n):
    scenes = torch.randn(n, SCENE)
    images = torch.tanh(scenes @ render) + 0.15 * torch.randn(n, 3 * 6 * 6)
    words = torch.multinomial(F.softmax(scenes @ word_topics, dim=-1), CAPTION_LEN, replacement=True)
    return images.view(n, 3, 6, 6), words


class ImageTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(108, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, EMBED)
        )

    def forward(self, images):
        return F.normalize(self.net(images), dim=-1)


class TextTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, 64, mode="mean")
        self.net = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, EMBED))

    def forward(self, words):
        return F.normalize(self.net(self.words(words)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = ImageTower()
        self.text = TextTower()
        # learned inverse temperature, kept in log space so that it stays positive
        self.log_scale = nn.Parameter(torch.tensor(0.7))

    def scale(self):
        return min(self.log_scale.exp().item(), MAX_SCALE)

    def forward(self, images, words):
        z_image, z_text = self.image(images), self.text(words)
        return self.scale() * z_image @ z_text.t()


def symmetric_info_nce(logits):
    target = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


@torch.no_grad()
def recall_at(model, images, words, k=5):
    model.eval()
    similarity = model.image(images) @ model.text(words).t()
    top = similarity.topk(k, dim=1).indices
    hit = (top == torch.arange(len(images))[:, None]).any(dim=1)
    model.train()
    return hit.float().mean().item()


train_images, train_words = make_pairs(4000)
test_images, test_words = make_pairs(400)

model = TwoTower()
weights = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": weights, "weight_decay": 1e-2}, {"params": others, "weight_decay": 0.0}], lr=2e-3
)

for epoch in range(8):
    order = torch.randperm(len(train_images))
    total = 0.0
    batches = order.split(128)
    for idx in batches:
        loss = symmetric_info_nce(model(train_images[idx], train_words[idx]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    recall = recall_at(model, test_images, test_words)
    print(f"epoch {epoch}  loss {total / len(batches):.3f}  R@5 {recall:.3f}  scale {model.scale():.2f}")
