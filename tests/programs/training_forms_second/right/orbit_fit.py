import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class Potential(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.a = nn.Linear(2, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def forward(self, pos):
        h = torch.tanh(self.a(pos))
        return self.c(torch.tanh(self.b(h))).squeeze(-1)


def truth(pos):
    r2 = pos.square().sum(-1, keepdim=True)
    return -pos / (r2 + 0.5) ** 1.5


def make_loss(model):
    def energy(weights, pos):
        return functional_call(model, weights, (pos,))

    def loss(weights, pos, force):
        guess = vmap(grad(lambda p: -energy(weights, p)))(pos)
        return (guess - force).square().sum(-1).mean()

    return loss


def force_error(model, n=400):
    pos = 1.5 * torch.randn(n, 2)
    pos.requires_grad_()
    (slope,) = torch.autograd.grad(model(pos).sum(), pos)
    return (-slope - truth(pos)).detach().square().sum(-1).mean().item()


def main():
    torch.manual_seed(16)
    model = Potential()
    weights = {k: v.detach().clone().requires_grad_() for k, v in model.named_parameters()}
    loss = make_loss(model)
    opt = torch.optim.Adam(weights.values(), lr=5e-3)
    for step in range(200):
        pos = 1.5 * torch.randn(64, 2)
        value = loss(weights, pos, truth(pos))
        opt.zero_grad()
        value.backward()
        opt.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {value.item():.5f}")
    model.load_state_dict(weights)
    print(f"force error {force_error(model):.5f}")


if __name__ == "__main__":
    main()
