"""Bilevel tuning of per-feature L2 penalties for a logistic model of a rare outcome (implicit differentiation)."""
import torch
import torch.nn.functional as F

torch.manual_seed(41)
torch.set_default_dtype(torch.float64)

N_FEATURES = 40
N_INFORMATIVE = 8
OUTER_STEPS = 60

true_w = torch.zeros(N_FEATURES)
true_w[:N_INFORMATIVE] = torch.randn(N_INFORMATIVE) * 1.3


def cohort(n):
    x = torch.randn(n, N_FEATURES)
    y = torch.bernoulli(torch.sigmoid(x @ true_w - 1.0))
    return x, y


train_x, train_y = cohort(120)
val_x, val_y = cohort(400)
test_x, test_y = cohort(3000)


def inner_objective(theta, log_pen):
    w, b = theta[:-1], theta[-1]
    fit = F.binary_cross_entropy_with_logits(train_x @ w + b, train_y)
    return fit + 0.5 * (log_pen.exp() * w.pow(2)).sum()


def outer_objective(theta, x, y):
    return F.binary_cross_entropy_with_logits(x @ theta[:-1] + theta[-1], y)


def fit_inner(log_pen, start):
    """Minimise the penalised training loss; warm-started at the last solution."""
    theta = start.clone().requires_grad_()
    fixed = log_pen.detach()
    solver = torch.optim.LBFGS([theta], lr=1.0, max_iter=60, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        value = inner_objective(theta, fixed)
        value.backward()
        return value

    solver.step(closure)
    return theta.detach()


def conjugate_gradient(matvec, rhs, iters=60, tol=1e-10):
    x = torch.zeros_like(rhs)
    r = rhs.clone()
    p = r.clone()
    rs = r @ r
    for _ in range(iters):
        ap = matvec(p)
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if new < tol ** 2:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def hypergradient(theta_star, log_pen):
    """d outer / d log_pen = - (d2 inner / d log_pen d theta) H^-1 (d outer / d theta)."""
    theta = theta_star.clone().requires_grad_()
    outer = outer_objective(theta, val_x, val_y)
    rhs = torch.autograd.grad(outer, theta)[0]
    slope = torch.autograd.grad(inner_objective(theta, log_pen), theta, create_graph=True)[0]
    q = conjugate_gradient(lambda v: torch.autograd.grad(slope, theta, v, retain_graph=True)[0], rhs)
    mixed = torch.autograd.grad(slope, log_pen, grad_outputs=q)[0]
    return outer.item(), -mixed


log_pen = torch.full((N_FEATURES,), -3.0, requires_grad=True)
theta = torch.zeros(N_FEATURES + 1)
outer_opt = torch.optim.Adam([log_pen], lr=0.15)
first_test = outer_objective(fit_inner(log_pen, theta), test_x, test_y).item()

for step in range(1, OUTER_STEPS + 1):
    theta = fit_inner(log_pen, theta)
    val_loss, log_pen.grad = hypergradient(theta, log_pen)
    outer_opt.step()
    with torch.no_grad():
        log_pen.clamp_(-9.0, 4.0)
    if step % 15 == 0:
        print(f"outer step {step:3d}  validation loss {val_loss:.4f}")

theta = fit_inner(log_pen, theta)
tuned_test = outer_objective(theta, test_x, test_y).item()
with torch.no_grad():
    strong = log_pen[:N_INFORMATIVE].mean().item()
    weak = log_pen[N_INFORMATIVE:].mean().item()
print(f"test loss: one penalty {first_test:.4f}, tuned penalties {tuned_test:.4f}")
print(f"mean log penalty: informative {strong:.2f}, noise {weak:.2f}")
