"""A coordinatewise recurrent optimizer, trained through short unrolls on random least-squares problems."""
import torch
import torch.nn as nn


class LeastSquares:
    def __init__(self, generator, rows=12, cols=10):
        self.a = torch.randn(rows, cols, generator=generator) / cols ** 0.5
        self.b = torch.randn(rows, generator=generator)
        self.start = torch.randn(cols, generator=generator)

    def __call__(self, theta):
        return (self.a @ theta - self.b).square().mean()


def log_and_sign(g, p=6.0):
    """Size and sign of a gradient as two inputs of similar scale."""
    size = (g.abs() + 1e-12).log() / p
    large = size >= -1
    return torch.stack([torch.where(large, size, -torch.ones_like(g)),
                        torch.where(large, g.sign(), g * torch.e ** p)], dim=1)


class LearnedRule(nn.Module):
    def __init__(self, hidden=16, scale=0.1):
        super().__init__()
        self.cell = nn.LSTMCell(2, hidden)
        self.out = nn.Linear(hidden, 1, bias=False)
        nn.init.zeros_(self.out.weight)
        self.hidden, self.scale = hidden, scale

    def initial_state(self, n):
        return torch.zeros(n, self.hidden), torch.zeros(n, self.hidden)

    def forward(self, g, state):
        state = self.cell(log_and_sign(g), state)
        return self.scale * self.out(state[0]).squeeze(1), state


def gradient_at(problem, theta):
    point = theta.detach().requires_grad_()
    (g,) = torch.autograd.grad(problem(point), point)
    return g


def meta_train(rule, meta_opt, problem, horizon=20, unroll=5):
    theta, state = problem.start.clone(), rule.initial_state(len(problem.start))
    for _ in range(horizon // unroll):
        meta_loss = 0.0
        for _ in range(unroll):
            update, state = rule(gradient_at(problem, theta), state)
            theta = theta + update
            meta_loss = meta_loss + problem(theta)
        meta_opt.zero_grad()
        meta_loss.backward()
        nn.utils.clip_grad_norm_(rule.parameters(), 1.0)
        meta_opt.step()
        theta = theta.detach()
        state = tuple(s.detach() for s in state)
    return problem(theta).item()


@torch.no_grad()
def run_rule(rule, problem, steps=20):
    theta, state = problem.start.clone(), rule.initial_state(len(problem.start))
    for _ in range(steps):
        with torch.enable_grad():
            g = gradient_at(problem, theta)
        update, state = rule(g, state)
        theta += update
    return problem(theta).item()


def run_sgd(problem, lr, steps=20):
    theta = problem.start.clone().requires_grad_()
    optimizer = torch.optim.SGD([theta], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        problem(theta).backward()
        optimizer.step()
    return problem(theta).item()


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(27)
    test = [LeastSquares(generator) for _ in range(10)]
    rule = LearnedRule()
    meta_opt = torch.optim.Adam(rule.parameters(), lr=1e-2)
    for episode in range(1, 25):
        final = meta_train(rule, meta_opt, LeastSquares(generator))
        if episode % 6 == 0:
            print(f"episode {episode:3d}  final loss of its problem {final:.3f}")
    start = sum(problem(problem.start).item() for problem in test) / len(test)
    learned = sum(run_rule(rule, problem) for problem in test) / len(test)
    plain = sum(run_sgd(problem, 0.5) for problem in test) / len(test)
    print(f"start {start:.3f}  learned rule {learned:.3f}  gradient descent {plain:.3f}")
    return rule, start, learned


if __name__ == "__main__":
    main()
