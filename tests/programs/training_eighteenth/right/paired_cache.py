"""Contrastive training of two encoders (caption features / image features) with a large batch in small memory.

GradCache: embed the whole batch in chunks without graphs, get the loss gradient with respect to the embeddings,
then run each chunk again with a graph and push the stored gradient through it.
"""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


def pairs(n, gen, mix_a, mix_b):
    latent = torch.randn(n, 6, generator=gen)
    a = torch.tanh(latent @ mix_a) + 0.1 * torch.randn(n, 32, generator=gen)
    b = torch.sin(latent @ mix_b) + 0.1 * torch.randn(n, 40, generator=gen)
    return a, b


class Encoder(nn.Module):
    def __init__(self, inputs, dim=24, p=0.1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 96), nn.ReLU(), nn.Dropout(p), nn.Linear(96, dim))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


@contextlib.contextmanager
def replay(rng_state):
    """Runs a block under an earlier state of the random generator, then puts the present one back."""
    present = torch.get_rng_state()
    torch.set_rng_state(rng_state)
    yield
    torch.set_rng_state(present)


class GradCache:
    def __init__(self, encoders, loss_fn, chunk):
        self.encoders, self.loss_fn, self.chunk = encoders, loss_fn, chunk

    @torch.no_grad()
    def embed(self, encoder, x):
        outs, states = [], []
        for part in x.split(self.chunk):
            states.append(torch.get_rng_state())
            outs.append(encoder(part))
        return torch.cat(outs), states

    def backward(self, batch):
        embedded = [self.embed(enc, x) for enc, x in zip(self.encoders, batch)]
        leaves = [out.detach().requires_grad_() for out, _ in embedded]
        loss = self.loss_fn(*leaves)
        loss.backward()
        for enc, x, leaf, (_, states) in zip(self.encoders, batch, leaves, embedded):
            for part, grad, state in zip(x.split(self.chunk), leaf.grad.split(self.chunk), states):
                with replay(state):
                    out = enc(part)
                (out * grad).sum().backward()
        return loss.item()


class InfoNCE(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(1 / temperature).log())

    def forward(self, a, b):
        logits = a @ b.T * self.log_scale.exp().clamp(max=50)
        target = torch.arange(len(a))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


class Trainer:
    def __init__(self, batch=256, chunk=32, lr=2e-3):
        self.a, self.b, self.loss_fn = Encoder(32), Encoder(40), InfoNCE()
        self.cache = GradCache([self.a, self.b], self.loss_fn, chunk)
        self.modules = nn.ModuleList([self.a, self.b, self.loss_fn])
        self.optimizer = torch.optim.AdamW(self.modules.parameters(), lr=lr, weight_decay=1e-3)
        self.batch = batch

    def fit(self, a, b, epochs):
        for epoch in range(epochs):
            self.modules.train()
            losses = []
            for idx in torch.randperm(len(a)).split(self.batch):
                self.optimizer.zero_grad()
                losses.append(self.cache.backward((a[idx], b[idx])))
                self.optimizer.step()
            if epoch % 5 == 4:
                print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}")

    @torch.no_grad()
    def recall(self, a, b):
        self.modules.eval()
        ranks = (self.a(a) @ self.b(b).T).argmax(1)
        return (ranks == torch.arange(len(a))).float().mean().item()


torch.manual_seed(0)
gen = torch.Generator().manual_seed(9)
mix_a, mix_b = torch.randn(6, 32, generator=gen), torch.randn(6, 40, generator=gen) * 0.7
train, test = pairs(2048, gen, mix_a, mix_b), pairs(256, gen, mix_a, mix_b)
trainer = Trainer()
trainer.fit(*train, epochs=20)
print(f"recall@1 among {len(test[0])}: {trainer.recall(*test):.3f}, scale {trainer.loss_fn.log_scale.exp().item():.2f}")
