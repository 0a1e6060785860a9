"""Acoustic echo cancellation: the step sizes of an NLMS filter are learned by running the filter inside the graph.

The filter taps are not parameters. They adapt online with their own rule; what is trained is a small network that
chooses the step size for each block from the signal levels, by backpropagation through the adaptation.
"""
import torch
import torch.nn as nn

TAPS = 16
BLOCK = 16
BLOCKS = 50
BATCH = 24


def simulate(n, gen):
    total = BLOCK * BLOCKS + TAPS - 1
    far = torch.randn(n, total, generator=gen)
    level = torch.rand(n, BLOCKS + 1, generator=gen).repeat_interleave(BLOCK, 1)[:, :total] + 0.2
    far = far * level
    decay = torch.exp(-torch.arange(TAPS) / 5.0)
    room = decay * torch.randn(n, TAPS, generator=gen)
    frames = far.unfold(1, TAPS, 1).flip(-1)
    echo = (frames * room[:, None]).sum(-1)
    # near-end talker: silent in most blocks, loud in some
    active = (torch.rand(n, BLOCKS, generator=gen) < 0.3).float().repeat_interleave(BLOCK, 1)
    near = active * 2.0 * torch.randn(n, BLOCK * BLOCKS, generator=gen)
    noise = 0.02 * torch.randn(n, BLOCK * BLOCKS, generator=gen)
    mic = echo + near + noise
    return frames.view(n, BLOCKS, BLOCK, TAPS), mic.view(n, BLOCKS, BLOCK), echo.view(n, BLOCKS, BLOCK)


class StepSize(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, frames, mic, err):
        # levels are observations, as in other learned optimizers; the gradient runs through the taps
        power = [v.detach().pow(2).mean(-1).add(1e-4).log() for v in (frames[..., 0], mic, err)]
        return torch.sigmoid(self.net(torch.stack(power, -1)))


def cancel(policy, frames, mic, echo):
    """Returns the residual echo of every block relative to the mean echo power; differentiable in the step sizes."""
    taps = torch.zeros(frames.shape[0], TAPS)
    residual = []
    for b in range(BLOCKS):
        x, d = frames[:, b], mic[:, b]
        est = (x @ taps[..., None])[..., 0]
        err = d - est
        residual.append((echo[:, b] - est).pow(2).mean(-1))
        mu = policy(x, d, err)
        update = (x * err[..., None]).sum(1) / (x.pow(2).sum((1, 2))[:, None] + 1e-3)
        taps = taps + mu * TAPS / 2 * update
    residual = torch.stack(residual, 1)
    return residual / echo.pow(2).mean((1, 2))[:, None]


class Constant(nn.Module):
    def __init__(self, mu):
        super().__init__()
        self.register_buffer("mu", torch.tensor([mu]))

    def forward(self, frames, mic, err):
        return self.mu


@torch.no_grad()
def erle(policy, data):
    tail = cancel(policy, *data)[:, BLOCKS // 2:]
    return -10 * torch.log10(tail.mean(1)).mean().item()


def main():
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(9)
    policy = StepSize()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    test = simulate(200, gen)
    for step in range(80):
        batch = simulate(BATCH, gen)
        loss = (cancel(policy, *batch) + 1e-3).log().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        if step % 20 == 19:
            print(f"step {step + 1} log residual {loss.item():.3f}")
    best = max(erle(Constant(mu), test) for mu in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8))
    print(f"echo reduction: best constant step {best:.2f} dB, learned steps {erle(policy, test):.2f} dB")


if __name__ == "__main__":
    main()
