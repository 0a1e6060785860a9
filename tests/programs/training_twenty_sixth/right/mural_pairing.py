"""Contrastive pairing of mural sketches and photographs with a batch that does not fit into memory at once."""
import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, n_in, n_out=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, n_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class PairModel(nn.Module):
    def __init__(self, sketch_dim, photo_dim):
        super().__init__()
        self.sketch = Tower(sketch_dim)
        self.photo = Tower(photo_dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def embed(self, sketch, photo):
        return self.sketch(sketch), self.photo(photo)


def clip_loss(a, b, log_scale):
    logits = log_scale.exp() * a @ b.T
    target = torch.arange(len(a))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


def large_batch_backward(model, sketch, photo, chunk):
    """Three passes: embed everything, differentiate the loss in embedding space, replay the chunks."""
    chunks = list(zip(sketch.split(chunk), photo.split(chunk)))
    with torch.no_grad():
        parts = [model.embed(s, p) for s, p in chunks]
    a = torch.cat([pa for pa, _ in parts]).detach().requires_grad_()
    b = torch.cat([pb for _, pb in parts]).detach().requires_grad_()

    loss = clip_loss(a, b, model.log_scale)
    loss.backward()

    for (s, p), grad_a, grad_b in zip(chunks, a.grad.split(chunk), b.grad.split(chunk)):
        ea, eb = model.embed(s, p)
        surrogate = (ea * grad_a).sum() + (eb * grad_b).sum()
        surrogate.backward()
    return loss.detach()


class MuralSource:
    """Both views are fixed nonlinear projections of the same latent motif."""

    def __init__(self, seed, latent=8, sketch_dim=20, photo_dim=32):
        self.gen = torch.Generator().manual_seed(seed)
        self.to_sketch = torch.randn(latent, sketch_dim, generator=self.gen)
        self.to_photo = torch.randn(latent, photo_dim, generator=self.gen)
        self.latent = latent

    def draw(self, n):
        z = torch.randn(n, self.latent, generator=self.gen)
        sketch = torch.tanh(z @ self.to_sketch) + 0.1 * torch.randn(n, self.to_sketch.shape[1], generator=self.gen)
        photo = torch.sin(z @ self.to_photo) + 0.1 * torch.randn(n, self.to_photo.shape[1], generator=self.gen)
        return sketch, photo


@torch.no_grad()
def retrieval_accuracy(model, sketch, photo):
    a, b = model.embed(sketch, photo)
    return ((a @ b.T).argmax(dim=1) == torch.arange(len(a))).float().mean().item()


def main(steps=80, batch=256, chunk=64):
    torch.manual_seed(17)
    source = MuralSource(seed=17)
    held_out = source.draw(200)
    model = PairModel(20, 32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    print(f"retrieval before training {retrieval_accuracy(model, *held_out):.3f}")
    for step in range(1, steps + 1):
        sketch, photo = source.draw(batch)
        optimizer.zero_grad()
        loss = large_batch_backward(model, sketch, photo, chunk)
        optimizer.step()
        with torch.no_grad():
            model.log_scale.clamp_(max=4.6)
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  retrieval {retrieval_accuracy(model, *held_out):.3f}")
    return model


if __name__ == "__main__":
    model = main()
