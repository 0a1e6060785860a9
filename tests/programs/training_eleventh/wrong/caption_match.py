"""Two-tower image-text matching with in-batch contrastive learning on rendered scenes and their short captions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

COLOURS = torch.tensor([[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.1, 0.1, 1.0], [1.0, 1.0, 0.1]])
SIDE, PATCH, WORDS = 16, 4, 13   # words: 0 pad, 1-4 colours, 5-8 columns, 9-12 rows


def make_pairs(n):
    colour, col, row = (torch.randint(0, 4, (n,)) for _ in range(3))
    images = 0.15 * torch.randn(n, 3, SIDE, SIDE)
    for i in range(n):
        y, x = 4 * row[i], 4 * col[i]
        images[i, :, y:y + 4, x:x + 4] += COLOURS[colour[i]][:, None, None]
    texts = torch.stack([1 + colour, 5 + col, 9 + row], 1)
    order = torch.argsort(torch.rand(n, 3), 1)
    return images, texts.gather(1, order), colour * 16 + col * 4 + row


class ImageTower(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(0.1 * torch.randn(1, (SIDE // PATCH) ** 2 + 1, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.project = nn.Linear(dim, out, bias=False)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.project(self.encoder(x)[:, 0])


class TextTower(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.words = nn.Embedding(WORDS, dim, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.project = nn.Linear(dim, out, bias=False)

    def forward(self, texts):
        return self.project(self.mlp(self.words(texts)).sum(1))


class Matcher(nn.Module):
    def __init__(self, dim=32, out=24):
        super().__init__()
        self.image, self.text = ImageTower(dim, out), TextTower(dim, out)
        self.log_scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, images, texts):
        a = F.normalize(self.image(images), dim=-1)
        b = F.normalize(self.text(texts), dim=-1)
        return self.log_scale.clamp(max=4.6).exp() * a @ b.t()


def contrastive_loss(logits, key):
    same = (key[:, None] == key[None]).float()      # equal scenes in a batch count as matches
    target = same / same.sum(1, keepdim=True)
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def make_optimizer(model, lr, weight_decay):
    decay, plain = [], []
    for name, p in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            plain.append(p)
        elif name.endswith("weight"):
            decay.append(p)
    return torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay},
                              {"params": plain, "weight_decay": 0.0}], lr=lr)


model = Matcher()
optimizer = make_optimizer(model, lr=5e-3, weight_decay=0.02)
for it in range(220):
    images, texts, key = make_pairs(48)
    loss = contrastive_loss(model(images, texts), key)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 60 == 0 or it == 219:
        print(f"iteration {it:3d}  loss {loss.item():.3f}")

model.eval()
images, _, key = make_pairs(300)
grid = torch.cartesian_prod(torch.arange(4), torch.arange(4), torch.arange(4))
with torch.no_grad():
    guess = model(images, grid + torch.tensor([1, 5, 9])).argmax(1)
accuracy = (guess == key).float().mean().item()
print(f"retrieval of the right caption among 64: {accuracy:.1%}")
