import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, dim=2, width=32):
        super().__init__()
        self.inp = nn.Linear(dim + 1, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, dim)

    def forward(self, x, sigma):
        h = self.inp(torch.cat([x, sigma.log()[:, None]], 1))
        h = F.relu(h, inplace=True)
        h = self.mid(h)
        h += 1.0
        h = torch.tanh(h)
        c = 1.0 / (1.0 + sigma[:, None])
        return c * x + (1 - c) * self.out(h)


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model)
        self.held = None

    def update(self, model):
        with torch.no_grad():
            for a, p in zip(self.model.state_dict().values(), model.state_dict().values()):
                a.mul_(self.decay).add_(p, alpha=1 - self.decay)

    def exchange(self, model):
        for a, p in zip(self.model.parameters(), model.parameters()):
            a.data, p.data = p.data, a.data


def sample_ring(n):
    a = torch.rand(n) * 6.2832
    return torch.stack([a.cos(), a.sin()], 1)


@torch.no_grad()
def quality(model, clean, z):
    x = model(clean + 0.3 * z, torch.full((z.shape[0],), 0.3))
    return F.mse_loss(x, clean).item()


def main(steps=60):
    torch.manual_seed(12)
    clean, z = sample_ring(64), torch.randn(64, 2)
    student = Net()
    teacher = Average(student, 0.9)
    opt = torch.optim.Adam(student.parameters(), lr=4e-3)
    sigmas = torch.logspace(-1, 0.5, 12)
    for step in range(steps):
        x0 = sample_ring(96)
        noise = torch.randn_like(x0)
        i = torch.randint(0, 11, (96,))
        hi, lo = sigmas[i + 1], sigmas[i]
        target = teacher.model(x0 + lo[:, None] * noise, lo).detach()
        out = student(x0 + hi[:, None] * noise, hi)
        consistency = F.mse_loss(out, target)
        denoise = F.mse_loss(out, x0)
        opt.zero_grad(set_to_none=False)
        consistency.backward(retain_graph=True)
        g = student.out.weight.grad.norm().item()
        weight = 1.0 / (1.0 + g)
        (weight * denoise).backward()
        opt.step()
        teacher.update(student)
        if step % 15 == 14:
            teacher.exchange(student)
            q = quality(student, clean, z)
            teacher.exchange(student)
            print(f"step {step} loss {(consistency + denoise).item():.4f} quality {q:.4f}")


if __name__ == "__main__":
    main()
