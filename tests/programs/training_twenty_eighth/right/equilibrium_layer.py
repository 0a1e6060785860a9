"""Deep equilibrium net for the steady state of a driven network, with implicit gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def fixed_point(step, start, tolerance=1e-6, limit=120):
    state = start
    for count in range(1, limit + 1):
        new = step(state)
        gap = (new - state).norm() / (1e-8 + new.norm())
        state = new
        if gap < tolerance:
            break
    return state, count


class EquilibriumLayer(nn.Module):
    """z = tanh(W z + U x + b) with |W|_2 <= 0.9, solved without a graph."""

    def __init__(self, inputs, width):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(width, width) / width ** 0.5)
        self.drive = nn.Linear(inputs, width)
        self.iterations = {"forward": 0, "backward": 0}

    def weight(self):
        norm = torch.linalg.matrix_norm(self.raw, 2)
        return self.raw * (0.9 / torch.clamp(norm, min=0.9))

    def forward(self, x):
        weight, bias = self.weight(), self.drive(x)
        with torch.no_grad():
            z, self.iterations["forward"] = fixed_point(
                lambda s: torch.tanh(s @ weight.T + bias), torch.zeros_like(bias)
            )
        z = torch.tanh(z @ weight.T + bias)
        if z.requires_grad:
            at = z.detach().requires_grad_()
            image = torch.tanh(at @ weight.detach().T + bias.detach())

            def solve_adjoint(grad):
                def pull(y):
                    return torch.autograd.grad(image, at, y, retain_graph=True)[0] + grad

                adjoint, self.iterations["backward"] = fixed_point(pull, grad)
                return adjoint

            z.register_hook(solve_adjoint)
        return z


class SteadyStateNet(nn.Module):
    def __init__(self, inputs=4, width=32, outputs=3):
        super().__init__()
        self.core = EquilibriumLayer(inputs, width)
        self.norm = nn.LayerNorm(width)
        self.readout = nn.Linear(width, outputs)
        nn.init.zeros_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def forward(self, x):
        return self.readout(self.norm(self.core(x)))


def driven_network(x, coupling, gain):
    """Relaxes the true system to its steady state and reads three of its nodes."""
    state = torch.zeros(x.shape[0], coupling.shape[0])
    for _ in range(200):
        state = state + 0.2 * (-state + torch.sin(state @ coupling.T + x @ gain.T))
    return 2.0 * state[:, :3]


def main(steps=260):
    torch.manual_seed(13)
    coupling = 0.25 * torch.randn(8, 8)
    gain = torch.randn(8, 4)
    train_x, test_x = torch.randn(512, 4), torch.randn(256, 4)
    train_y, test_y = driven_network(train_x, coupling, gain), driven_network(test_x, coupling, gain)

    model = SteadyStateNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        pick = torch.randint(0, 512, (64,))
        loss = F.mse_loss(model(train_x[pick]), train_y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 65 == 64:
            count = model.core.iterations
            print(f"step {step + 1:4d}  mse {loss.item():.4f}  solver {count['forward']} / {count['backward']} iterations")

    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(test_x), test_y) / test_y.var()
    print(f"relative test error {error.item():.4f}")
    return model, error.item()


if __name__ == "__main__":
    steady_net, test_error = main()
