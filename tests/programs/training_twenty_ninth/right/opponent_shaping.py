"""LOLA with exact values (Foerster et al. 2018) in the iterated prisoner's dilemma, a batch of pairs at a time.

Each player differentiates through the other's next gradient step. The naive learners are there to compare.
"""
import torch

GAMMA = 0.96
PAIRS = 24
STEP, LOOKAHEAD = 25.0, 25.0
# rewards of the outcomes CC, CD, DC, DD
FIRST = torch.tensor([-1.0, -3.0, 0.0, -2.0])
SECOND = torch.tensor([-1.0, 0.0, -3.0, -2.0])


def outcome(p, q):
    """Probabilities of the four outcomes when the players cooperate with probability p and q."""
    return torch.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], dim=-1)


def values(theta_a, theta_b):
    """Normalised discounted values of both players; five logits each: the first move, then after CC, CD, DC, DD."""
    a = theta_a.sigmoid()
    b = theta_b.sigmoid()[:, [0, 1, 3, 2, 4]]  # the second player sees CD as DC
    start = outcome(a[:, 0], b[:, 0])
    chain = outcome(a[:, 1:], b[:, 1:])
    occupancy = torch.linalg.solve(torch.eye(4) - GAMMA * chain.transpose(1, 2), start.unsqueeze(-1)).squeeze(-1)
    occupancy = (1 - GAMMA) * occupancy
    return occupancy @ FIRST, occupancy @ SECOND


def gradient(output, inputs, **kwargs):
    """Pairs do not touch each other, so the gradient of the sum is the gradient of each."""
    return torch.autograd.grad(output.sum(), inputs, **kwargs)[0]


class Naive:
    def directions(self, theta_a, theta_b):
        value_a, value_b = values(theta_a, theta_b)
        return gradient(value_a, theta_a, retain_graph=True), gradient(value_b, theta_b)


class Lola:
    """Own gradient plus (grad_b V_a) . d(grad_b V_b)/d(theta_a), the first factor held fixed."""

    def __init__(self, lookahead):
        self.lookahead = lookahead

    def directions(self, theta_a, theta_b):
        value_a, value_b = values(theta_a, theta_b)
        own_a = gradient(value_a, theta_a, retain_graph=True)
        own_b = gradient(value_b, theta_b, retain_graph=True)
        cross_a = gradient(value_a, theta_b, retain_graph=True).detach()
        cross_b = gradient(value_b, theta_a, retain_graph=True).detach()
        step_a = gradient(value_a, theta_a, create_graph=True)
        step_b = gradient(value_b, theta_b, create_graph=True)
        shape_a = gradient(cross_a * step_b, theta_a, retain_graph=True)
        shape_b = gradient(cross_b * step_a, theta_b)
        return own_a + self.lookahead * shape_a, own_b + self.lookahead * shape_b


class Average:
    """Exponential average of the joint policies with correction for the start, kept beside the learners."""

    def __init__(self, shape, decay=0.9):
        self.sum, self.weight, self.decay = torch.zeros(shape), 0.0, decay

    def add(self, sample):
        self.sum.mul_(self.decay).add_(sample.detach(), alpha=1 - self.decay)
        self.weight = self.decay * self.weight + 1 - self.decay

    def read(self):
        return self.sum / self.weight


def play(learner, steps=120):
    theta_a = torch.randn(PAIRS, 5, requires_grad=True)
    theta_b = torch.randn(PAIRS, 5, requires_grad=True)
    policies = Average((2, PAIRS, 5))
    for step in range(steps):
        up_a, up_b = learner.directions(theta_a, theta_b)
        theta_a.data.add_(up_a, alpha=STEP)
        theta_b.data.add_(up_b, alpha=STEP)
        policies.add(torch.stack([theta_a, theta_b]).sigmoid())
        if step % 40 == 39:
            with torch.no_grad():
                value_a, value_b = values(theta_a, theta_b)
            print(f"  step {step + 1:3d}  value {value_a.mean():.3f} {value_b.mean():.3f}")
    return policies.read().mean(dim=(0, 1)), value_a.mean().item()


def main():
    results = {}
    for name, learner in (("naive", Naive()), ("lola", Lola(LOOKAHEAD))):
        torch.manual_seed(6)
        print(name)
        policy, results[name] = play(learner)
        print("  cooperation at the start and after CC, CD, DC, DD: "
              + " ".join(f"{p:.2f}" for p in policy.tolist()))
    print(f"value of the first player: naive {results['naive']:.3f}, lola {results['lola']:.3f}")


if __name__ == "__main__":
    main()
