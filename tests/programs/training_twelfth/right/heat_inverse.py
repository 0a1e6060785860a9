"""Self-adaptive PINN (McClenny & Braga-Neto, 2020) for an inverse heat problem: fit u and the diffusivity."""
import math

import torch
import torch.nn as nn

torch.manual_seed(17)

TRUE_KAPPA = 0.12
N_INNER, N_INIT, N_EDGE, N_SENSOR = 256, 48, 48, 24
ADAM_STEPS, LBFGS_STEPS = 500, 12


def exact(x, t):
    return (torch.exp(-TRUE_KAPPA * math.pi ** 2 * t) * torch.sin(math.pi * x)
            + 0.4 * torch.exp(-TRUE_KAPPA * 4 * math.pi ** 2 * t) * torch.sin(2 * math.pi * x))


class Field(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([2 * x - 1, 2 * t - 1], dim=1))


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


field = Field()
log_kappa = nn.Parameter(torch.tensor(math.log(0.4)))

x_in = torch.rand(N_INNER, 1).requires_grad_()
t_in = torch.rand(N_INNER, 1).requires_grad_()
x_0, t_0 = torch.rand(N_INIT, 1), torch.zeros(N_INIT, 1)
x_e, t_e = torch.randint(0, 2, (N_EDGE, 1)).float(), torch.rand(N_EDGE, 1)
x_s, t_s = torch.rand(N_SENSOR, 1), torch.rand(N_SENSOR, 1)
u_0 = exact(x_0, t_0)
u_s = exact(x_s, t_s) + 0.005 * torch.randn(N_SENSOR, 1)

# one weight per collocation and initial point, raised where the error stays large
w_in = nn.Parameter(torch.ones(N_INNER, 1))
w_0 = nn.Parameter(torch.ones(N_INIT, 1))


def residuals():
    u = field(x_in, t_in)
    u_t = derivative(u, t_in)
    u_xx = derivative(derivative(u, x_in), x_in)
    pde = u_t - log_kappa.exp() * u_xx
    return pde, field(x_0, t_0) - u_0, field(x_e, t_e), field(x_s, t_s) - u_s


def objective(m_in, m_0):
    pde, init, edge, sensor = residuals()
    return ((m_in * pde) ** 2).mean() + ((m_0 * init) ** 2).mean() + (edge ** 2).mean() \
        + 10 * (sensor ** 2).mean()


opt = torch.optim.Adam([{"params": field.parameters()}, {"params": [log_kappa], "lr": 1e-2}], lr=5e-3)
opt_w = torch.optim.Adam([w_in, w_0], lr=5e-3, maximize=True)

for step in range(ADAM_STEPS):
    opt.zero_grad()
    opt_w.zero_grad()
    loss = objective(w_in, w_0)
    loss.backward()
    opt.step()
    opt_w.step()
    if (step + 1) % 125 == 0:
        print(f"adam {step + 1:4d}  loss {loss.item():.5f}  kappa {log_kappa.exp().item():.4f}  "
              f"weights up to {w_in.max().item():.2f}")

# polish with the weights held fixed
m_in, m_0 = w_in.detach(), w_0.detach()
lbfgs = torch.optim.LBFGS([*field.parameters(), log_kappa], max_iter=15, history_size=20,
                          line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = objective(m_in, m_0)
    value.backward()
    return value


for _ in range(LBFGS_STEPS):
    loss = lbfgs.step(closure)
with torch.no_grad():
    gx, gt = (g.reshape(-1, 1) for g in torch.meshgrid(*[torch.linspace(0, 1, 41)] * 2, indexing="ij"))
    error = ((field(gx, gt) - exact(gx, gt)).norm() / exact(gx, gt).norm()).item()
print(f"lbfgs loss {loss.item():.6f}  kappa {log_kappa.exp().item():.4f} (true {TRUE_KAPPA})  rel. error {error:.4f}")
