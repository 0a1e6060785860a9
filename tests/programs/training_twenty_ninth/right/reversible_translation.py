"""Translation with a reversible encoder: the layers keep no activations, backward computes them again from the output."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

WORDS, LENGTH, DIM, DEPTH = 24, 6, 24, 2


class Reversible(torch.autograd.Function):
    """A stack of pairs y1 = x1 + f(x2), y2 = x2 + g(y1)."""

    @staticmethod
    def forward(ctx, x1, x2, layers, *parameters):
        for layer in layers:
            x1 = x1 + layer.f(x2)
            x2 = x2 + layer.g(x1)
        ctx.layers = layers
        ctx.save_for_backward(x1, x2)
        return x1, x2

    @staticmethod
    @once_differentiable
    def backward(ctx, d1, d2):
        y1, y2 = ctx.saved_tensors
        found = []
        for layer in reversed(ctx.layers):
            y1, d1, y2, d2, grads_g = Reversible.undo(layer.g, y1, d1, y2, d2)
            y2, d2, y1, d1, grads_f = Reversible.undo(layer.f, y2, d2, y1, d1)
            found = [*grads_f, *grads_g, *found]
        return d1, d2, None, *found

    @staticmethod
    def undo(part, source, d_source, total, d_total):
        """Takes part(source) off the total again and sends the gradient of the total through part."""
        source = source.detach().requires_grad_()
        with torch.enable_grad():
            added = part(source)
        through, *grads = torch.autograd.grad(added, [source, *part.parameters()], d_total)
        return source.detach(), d_source + through, total - added.detach(), d_total, grads


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return self.proj(F.scaled_dot_product_attention(q, k, v))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = Attend()
        self.g = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, DIM)
        self.position = nn.Parameter(0.3 * torch.randn(LENGTH, DIM))
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(2 * DIM)
        self.output = nn.Linear(2 * DIM, WORDS)

    def forward(self, source):
        x = self.embed(source) + self.position
        parameters = [p for layer in self.layers for part in (layer.f, layer.g) for p in part.parameters()]
        y1, y2 = Reversible.apply(x, x, self.layers, *parameters)
        return self.output(self.norm(torch.cat([y1, y2], dim=-1)))


def sentences(mapping, count, generator):
    """The target language reverses the order of the words; a word also depends on whether it stands first."""
    source = torch.randint(0, WORDS, (count, LENGTH), generator=generator)
    target = mapping[source].flip(1)
    target[:, 0] = (target[:, 0] + 1) % WORDS
    return source, target


def main(steps=80):
    torch.manual_seed(71)
    generator = torch.Generator().manual_seed(72)
    mapping = torch.randperm(WORDS, generator=generator)
    model = Translator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    for step in range(1, steps + 1):
        source, target = sentences(mapping, 24, generator)
        loss = F.cross_entropy(model(source).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            with torch.no_grad():
                source, target = sentences(mapping, 100, generator)
                words = (model(source).argmax(-1) == target).float().mean().item()
            print(f"step {step:3d}  loss {loss.item():.3f}  words {words:.3f}")
    return model


if __name__ == "__main__":
    model = main()
