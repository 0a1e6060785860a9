"""Aligns photo and caption vectors with a contrastive loss over a large batch, encoded in small pieces."""
import torch
from torch import nn
import torch.nn.functional as F

PHOTO, CAPTION, SHARED = 40, 30, 16
BATCH, PIECE = 96, 24


class Tower(nn.Module):
    def __init__(self, inputs, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, SHARED)
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.photo = Tower(PHOTO)
        self.caption = Tower(CAPTION)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def contrast(self, photos, captions):
        logits = self.log_scale.exp() * photos @ captions.t()
        target = torch.arange(len(logits))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


class CachedStep:
    """Gao et al. 2021: gradients of the whole batch at the memory of one piece."""

    def __init__(self, model, piece):
        self.model = model
        self.piece = piece

    @torch.no_grad()
    def encode(self, tower, inputs):
        vectors, states = [], []
        for part in inputs.split(self.piece):
            states.append(torch.get_rng_state())
            vectors.append(tower(part))
        return torch.cat(vectors).requires_grad_(), states

    def push(self, tower, inputs, grads, states):
        for part, grad, state in zip(inputs.split(self.piece), grads.split(self.piece), states):
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(state)
                vectors = tower(part)
            (vectors * grad).sum().backward()

    def backward(self, photos, captions):
        photo_vectors, photo_states = self.encode(self.model.photo, photos)
        caption_vectors, caption_states = self.encode(self.model.caption, captions)
        loss = self.model.contrast(photo_vectors, caption_vectors)
        loss.backward()
        self.push(self.model.photo, photos, photo_vectors.grad, photo_states)
        self.push(self.model.caption, captions, caption_vectors.grad, caption_states)
        return loss.detach()


def make_pairs(count, to_photo, to_caption):
    topic = torch.randn(count, to_photo.shape[0])
    photos = torch.tanh(topic @ to_photo) + 0.1 * torch.randn(count, PHOTO)
    captions = topic @ to_caption + 0.1 * torch.randn(count, CAPTION)
    return photos, captions


def recall(model, photos, captions):
    model.eval()
    with torch.no_grad():
        similarity = model.photo(photos) @ model.caption(captions).t()
    model.train()
    return (similarity.argmax(dim=1) == torch.arange(len(photos))).float().mean().item()


def main():
    torch.manual_seed(27)
    to_photo, to_caption = torch.randn(8, PHOTO) / 2, torch.randn(8, CAPTION) / 2
    photos, captions = make_pairs(1200, to_photo, to_caption)
    test_photos, test_captions = make_pairs(200, to_photo, to_caption)

    model = Matcher()
    cached = CachedStep(model, PIECE)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    print(f"before: recall {recall(model, test_photos, test_captions):.3f}")
    for step in range(80):
        rows = torch.randperm(len(photos))[:BATCH]
        optimizer.zero_grad()
        loss = cached.backward(photos[rows], captions[rows])
        optimizer.step()
        if (step + 1) % 20 == 0:
            scale = model.log_scale.exp().item()
            print(f"step {step + 1:3d}  loss {loss.item():.4f}  scale {scale:.2f}")
    print(f"after: recall {recall(model, test_photos, test_captions):.3f}")


if __name__ == "__main__":
    main()
