"""Few-shot adaptation to new speakers' vowel maps: Reptile on a small regressor."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SHOTS, QUERY = 10, 40


class Speaker:
    """Maps two articulation coordinates to three formants, in a speaker's own way."""

    world = torch.Generator().manual_seed(55)
    base = torch.randn(3, 8, generator=world)
    shift = torch.randn(3, 8, generator=world)
    freq = torch.randn(8, 2, generator=world)

    def __init__(self, g):
        self.lean = 1.5 * torch.randn(1, generator=g)
        self.phase = 0.6 * torch.randn(8, generator=g)
        self.g = g

    def sample(self, n):
        x = 2 * torch.rand(n, 2, generator=self.g) - 1
        waves = torch.sin(2 * x @ self.freq.T + self.phase)
        y = waves @ (self.base + self.lean * self.shift).T / 3
        return x, y + 0.03 * torch.randn(y.shape, generator=self.g)


def regressor(width=40):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))


def adapt(model, x, y, steps, lr):
    """Plain gradient descent on one speaker; changes the model in place."""
    for _ in range(steps):
        loss = F.mse_loss(model(x), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, grad in zip(model.parameters(), grads):
                p -= lr * grad
    return loss.item()


class Reptile:
    def __init__(self, model, inner_steps=8, inner_lr=0.1, outer_lr=1.0):
        self.model = model
        self.inner = dict(steps=inner_steps, lr=inner_lr)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=outer_lr)

    def keep(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @torch.no_grad()
    def put_back(self, weights):
        for p, w in zip(self.model.parameters(), weights):
            p.copy_(w)

    def meta_step(self, speakers):
        origin = self.keep()
        drift = [torch.zeros_like(w) for w in origin]
        total = 0.0
        for speaker in speakers:
            total += adapt(self.model, *speaker.sample(SHOTS), **self.inner)
            for d, p, w in zip(drift, self.model.parameters(), origin):
                d += (w - p.detach()) / len(speakers)
            self.put_back(origin)
        for p, d in zip(self.model.parameters(), drift):
            p.grad = d
        self.optimizer.step()
        return total / len(speakers)

    def few_shot_error(self, speakers):
        """Error on unseen vowels of new speakers after the same short adaptation."""
        origin, total = self.keep(), 0.0
        for speaker in speakers:
            adapt(self.model, *speaker.sample(SHOTS), **self.inner)
            x, y = speaker.sample(QUERY)
            with torch.no_grad():
                total += F.mse_loss(self.model(x), y).item()
            self.put_back(origin)
        return total / len(speakers)


def main(meta_steps=150, speakers_per_step=5):
    torch.manual_seed(12)
    g = torch.Generator().manual_seed(12)
    new_speakers = [Speaker(g) for _ in range(20)]
    reptile = Reptile(regressor())
    print(f"fresh start: few-shot error {reptile.few_shot_error(new_speakers):.3f}")
    for step in range(1, meta_steps + 1):
        for group in reptile.optimizer.param_groups:
            group["lr"] = 1.0 - 0.9 * step / meta_steps
        inner = reptile.meta_step([Speaker(g) for _ in range(speakers_per_step)])
        if step % 30 == 0:
            print(f"step {step}  inner loss {inner:.3f}  few-shot error {reptile.few_shot_error(new_speakers):.3f}")
    return reptile, new_speakers


if __name__ == "__main__":
    reptile, new_speakers = main()
