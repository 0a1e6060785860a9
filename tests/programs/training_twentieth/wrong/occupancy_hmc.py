"""Bayesian species-occupancy model fitted by Hamiltonian Monte Carlo.

Sites are visited several times.  A site is occupied with a probability that depends on elevation and
forest cover; an occupied site yields a detection on each visit with a probability that depends on
effort.  The posterior of the six coefficients is explored with leapfrog trajectories.
"""
import torch
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)

SITES, VISITS = 120, 4
BETA = torch.tensor([0.3, 1.1, -0.8])
ALPHA = torch.tensor([-0.4, 0.9, 0.5])


def survey():
    x = torch.cat([torch.ones(SITES, 1), torch.randn(SITES, 2)], dim=1)
    w = torch.cat([torch.ones(SITES, VISITS, 1), torch.randn(SITES, VISITS, 2)], dim=2)
    occupied = torch.bernoulli(torch.sigmoid(x @ BETA))
    seen = torch.bernoulli(torch.sigmoid(w @ ALPHA)) * occupied.unsqueeze(1)
    return x, w, seen


class Posterior:
    def __init__(self, x, w, seen, scale=1.5):
        self.x, self.w, self.seen, self.scale = x, w, seen, scale

    def log_prob(self, theta):
        beta, alpha = theta[:3], theta[3:]
        occ = self.x @ beta
        det = self.w @ alpha
        log_history = -F.binary_cross_entropy_with_logits(det, self.seen, reduction="none").sum(1)
        present = F.logsigmoid(occ) + log_history
        absent = F.logsigmoid(-occ)
        never = self.seen.sum(1) == 0
        like = torch.where(never, torch.logaddexp(present, absent), present)
        return like.sum() - 0.5 * (theta / self.scale).pow(2).sum()

    def value_and_grad(self, theta):
        lp = self.log_prob(theta)
        (grad,) = torch.autograd.grad(lp, theta)
        return lp.item(), grad


class HMC:
    def __init__(self, posterior, theta, step_size, n_leapfrog):
        self.posterior = posterior
        self.theta = theta.requires_grad_(True)
        self.step_size, self.n_leapfrog = step_size, n_leapfrog
        self.proposed = self.accepted = 0

    def leapfrog(self, momentum):
        eps = self.step_size
        lp, grad = self.posterior.value_and_grad(self.theta)
        for _ in range(self.n_leapfrog):
            with torch.no_grad():
                momentum = momentum + 0.5 * eps * grad
                self.theta.add_(eps * momentum)
            lp, grad = self.posterior.value_and_grad(self.theta)
            momentum = momentum + 0.5 * eps * grad
        return lp, momentum

    def step(self):
        current = self.theta.detach()
        momentum = torch.randn_like(current)
        lp_old = self.posterior.value_and_grad(self.theta)[0]
        h_old = lp_old - 0.5 * momentum.pow(2).sum()
        lp_new, momentum = self.leapfrog(momentum)
        h_new = lp_new - 0.5 * momentum.pow(2).sum()
        self.proposed += 1
        if torch.rand(()).log() < h_new - h_old:
            self.accepted += 1
        else:
            with torch.no_grad():
                self.theta.copy_(current)
        return self.theta.detach().clone()


def main(warmup=100, draws=400, step_size=0.27, n_leapfrog=5):
    posterior = Posterior(*survey())
    sampler = HMC(posterior, torch.zeros(6), step_size, n_leapfrog)
    for _ in range(warmup):
        sampler.step()
    sampler.proposed = sampler.accepted = 0
    chain = torch.stack([sampler.step() for _ in range(draws)])
    mean, sd = chain.mean(0), chain.std(0)
    truth = torch.cat([BETA, ALPHA])
    names = ["occ:int", "occ:elev", "occ:forest", "det:int", "det:hours", "det:wind"]
    print(f"acceptance {sampler.accepted / sampler.proposed:.2f} over {draws} trajectories")
    for name, m, s, t in zip(names, mean, sd, truth):
        print(f"{name:11s} mean {m:+.3f}  sd {s:.3f}  simulated with {t:+.2f}")
    inside = ((truth - mean).abs() < 1.96 * sd).sum().item()
    print(f"{inside} of 6 coefficients inside the 95% interval")
    return chain, sampler, mean, sd


if __name__ == "__main__":
    chain, sampler, mean, sd = main()
