"""Learned sparse restoration of noisy pulse trains: residual blocks with a shrinkage nonlinearity of our own."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

LENGTH = 48
WIDTH = 64
DEPTH = 8
STEPS = 450
BATCH = 64

kernel = torch.tensor([0.15, 0.45, 1.0, 0.6, 0.2, -0.3, -0.1]).view(1, 1, -1)


def sample_traces(n):
    """Sparse spikes, blurred by the instrument response, with measurement noise."""
    spikes = torch.randn(n, LENGTH) * (torch.rand(n, LENGTH) < 0.12)
    trace = F.conv1d(spikes.unsqueeze(1), kernel, padding=3).squeeze(1)
    return trace + 0.05 * torch.randn_like(trace), spikes


class Shrink(torch.autograd.Function):
    """Soft threshold: sign(x) * max(|x| - lam, 0), with one mask kept for the backward pass."""

    @staticmethod
    def forward(ctx, x, lam):
        small = x.abs() <= lam
        ctx.save_for_backward(small)
        out = x - lam * x.sign()
        out[small] = 0.0
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (small,) = ctx.saved_tensors
        grad_input = grad_output
        grad_input[small] = 0.0
        return grad_input, None


class ShrinkBlock(nn.Module):
    def __init__(self, width, lam=0.5):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)
        self.lam = lam

    def forward(self, x):
        return x + Shrink.apply(self.lin(self.norm(x)), self.lam)


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[ShrinkBlock(WIDTH) for _ in range(DEPTH)])
        self.out = nn.Linear(WIDTH, LENGTH)

    def forward(self, trace):
        return self.out(self.blocks(self.lift(trace)))


val_trace, val_spikes = sample_traces(1000)


@torch.no_grad()
def validate(model):
    model.eval()
    err = (model(val_trace) - val_spikes).pow(2).mean()
    model.train()
    return (err / val_spikes.pow(2).mean()).item()


model = Restorer()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
curve = []

for step in range(1, STEPS + 1):
    trace, spikes = sample_traces(BATCH)
    loss = F.mse_loss(model(trace), spikes)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 90 == 0:
        curve.append(validate(model))
        print(f"step {step:4d}  train {loss.item():.4f}  relative error {curve[-1]:.3f}")

final_error = validate(model)
print(f"relative restoration error {final_error:.3f} ({sum(p.numel() for p in model.parameters())} weights)")
