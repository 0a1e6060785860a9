"""A sigmoid belief network with binary latents, trained by the score function estimator (NVIL)."""
import torch
import torch.nn.functional as F
from torch import nn


def bars(count, side=4, flip=0.02):
    """Binary images: every row is lit or not, with a little noise."""
    rows = (torch.rand(count, side, 1) < 0.4).float()
    image = rows.expand(count, side, side).reshape(count, side * side)
    noise = (torch.rand_like(image) < flip).float()
    return (image - noise).abs()


def bernoulli_log_prob(logits, value):
    return -F.binary_cross_entropy_with_logits(logits, value, reduction="none").sum(dim=-1)


class BeliefNet(nn.Module):
    def __init__(self, pixels=16, latents=8, width=32):
        super().__init__()
        self.prior_logits = nn.Parameter(torch.zeros(latents))
        self.infer = nn.Sequential(nn.Linear(pixels, width), nn.Tanh(), nn.Linear(width, latents))
        self.generate = nn.Sequential(nn.Linear(latents, width), nn.Tanh(), nn.Linear(width, pixels))

    def log_joint(self, x, z):
        prior = bernoulli_log_prob(self.prior_logits.expand_as(z), z)
        return prior + bernoulli_log_prob(self.generate(2 * z - 1), x)

    def forward(self, x):
        """One latent sample for each row, with the evidence bound and log q of the sample."""
        logits = self.infer(2 * x - 1)
        z = torch.bernoulli(torch.sigmoid(logits.detach()))
        log_q = bernoulli_log_prob(logits, z)
        return self.log_joint(x, z) - log_q, log_q

    @torch.no_grad()
    def bound(self, x, draws=10):
        return torch.stack([self(x)[0] for _ in range(draws)]).mean().item()


class LearningSignal:
    """Centres and scales the bound with exponential averages of its mean and variance."""

    def __init__(self, decay=0.9):
        self.decay = decay
        self.mean = None
        self.var = None

    def update(self, signal):
        mean = signal.mean()
        var = signal.var()
        if self.mean is None:
            self.mean, self.var = mean, var
        else:
            self.mean = self.decay * self.mean + (1 - self.decay) * mean
            self.var = self.decay * self.var + (1 - self.decay) * var

    def normalise(self, signal):
        scale = self.var.sqrt().clamp_min(1.0)
        return ((signal - self.mean) / scale).detach()


def train(net, data, steps, batch, lr):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    learning_signal = LearningSignal()
    trace = []
    for step in range(steps):
        rows = torch.randint(0, len(data), (batch,))
        bound, log_q = net(data[rows])
        learning_signal.update(bound)
        advantage = learning_signal.normalise(bound)
        loss = -(bound + advantage * log_q).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimizer.step()
        trace.append(bound.mean().item())
        if step % 60 == 0 or step == steps - 1:
            print(f"step {step:3d}  bound {trace[-1]:.3f}  baseline {learning_signal.mean.item():.3f}")
    return trace, learning_signal


@torch.no_grad()
def dream(net, count):
    z = torch.bernoulli(torch.sigmoid(net.prior_logits).expand(count, -1))
    return (torch.sigmoid(net.generate(2 * z - 1)) > 0.5).float()


def main(steps=240):
    torch.manual_seed(2)
    torch.set_num_threads(1)
    data, test = bars(800), bars(200)
    net = BeliefNet()
    print(f"test bound before {net.bound(test):.3f}")
    trace, learning_signal = train(net, data, steps=steps, batch=64, lr=1e-2)
    print(f"test bound after  {net.bound(test):.3f}")
    for image in dream(net, 3):
        print(" / ".join("".join("#" if v else "." for v in row) for row in image.view(4, 4)))
    return net, trace, learning_signal


if __name__ == "__main__":
    net, trace, learning_signal = main()
