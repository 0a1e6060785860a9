"""Find the launch velocity of a probe and the masses of two fixed bodies with a memory-free reversible simulator.

The leapfrog integrator can be run backwards exactly, so the simulator keeps only its last state and rebuilds
the path during the backward pass.
"""
import torch
import torch.nn as nn

SEED = 2
STEPS, DT = 30, 0.04
ITERATIONS = 150

torch.manual_seed(SEED)
torch.set_default_dtype(torch.float64)


def acceleration(pos, masses, bodies):
    offset = bodies[None] - pos[:, None]
    dist2 = offset.pow(2).sum(-1, keepdim=True) + 0.1
    return (masses[None, :, None] * offset / dist2.pow(1.5)).sum(1)


def leapfrog(pos, vel, masses, bodies, dt):
    vel = vel + 0.5 * dt * acceleration(pos, masses, bodies)
    pos = pos + dt * vel
    vel = vel + 0.5 * dt * acceleration(pos, masses, bodies)
    return pos, vel


class ReversibleFlight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, vel, masses, bodies):
        for _ in range(STEPS):
            pos, vel = leapfrog(pos, vel, masses, bodies, DT)
        ctx.save_for_backward(pos, vel, masses, bodies)
        return pos, vel

    @staticmethod
    def backward(ctx, grad_pos, grad_vel):
        pos, vel, masses, bodies = ctx.saved_tensors
        grad_masses = torch.zeros_like(masses)
        for _ in range(STEPS):
            with torch.no_grad():
                pos, vel = leapfrog(pos, vel, masses, bodies, -DT)
            with torch.enable_grad():
                p, v, m = (z.detach().requires_grad_(True) for z in (pos, vel, masses))
                out = leapfrog(p, v, m, bodies, DT)
                grad_pos, grad_vel, gm = torch.autograd.grad(out, (p, v, m), (grad_pos, grad_vel))
            grad_masses += gm
        return grad_pos, grad_vel, grad_masses, None


class Mission(nn.Module):
    def __init__(self, n_probes):
        super().__init__()
        self.register_buffer("bodies", torch.tensor([[0.0, 0.0], [1.5, 0.5]]))
        self.register_buffer("start", torch.randn(n_probes, 2) * 0.3 + torch.tensor([-1.2, 0.4]))
        self.velocity = nn.Parameter(torch.zeros(n_probes, 2))
        self.log_masses = nn.Parameter(torch.zeros(2))

    def forward(self, simulator=ReversibleFlight.apply):
        return simulator(self.start, self.velocity, self.log_masses.exp(), self.bodies)


def plain_flight(pos, vel, masses, bodies):
    """Same flight through ordinary autograd, for the check at the start."""
    for _ in range(STEPS):
        pos, vel = leapfrog(pos, vel, masses, bodies, DT)
    return pos, vel


truth = Mission(6)
with torch.no_grad():
    truth.velocity.copy_(torch.randn(6, 2) * 0.4)
    truth.log_masses.copy_(torch.tensor([0.3, -0.5]))
    end_pos, end_vel = truth()

mission = Mission(6)
mission.start.copy_(truth.start)


def mismatch(final):
    return (final[0] - end_pos).pow(2).mean() + (final[1] - end_vel).pow(2).mean()


params = list(mission.parameters())
fast = torch.autograd.grad(mismatch(mission()), params)
slow = torch.autograd.grad(mismatch(mission(plain_flight)), params)
print("largest gradient difference", max((a - b).abs().max().item() for a, b in zip(fast, slow)))

optimizer = torch.optim.Adam(params, lr=0.04)
for i in range(ITERATIONS):
    loss = mismatch(mission())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 30 == 0 or i == ITERATIONS - 1:
        print(f"iteration {i:3d} mismatch {loss.item():.6f}")
print("masses", [round(m, 3) for m in mission.log_masses.exp().tolist()], "true",
      [round(m, 3) for m in truth.log_masses.exp().tolist()])
print("velocity error", f"{(mission.velocity - truth.velocity).norm().item():.4f}")
