"""Bilevel choice of one weight penalty for every feature of a logistic regression, by implicit differentiation.

The lower problem is solved with Newton steps.  The upper gradient comes from the implicit function theorem; the linear
system with the Hessian is solved by conjugate gradients on Hessian-vector products.
"""
import torch
import torch.nn.functional as F

FEATURES, USEFUL = 30, 4


def make_set(count, true_weight, generator):
    features = torch.randn(count, FEATURES, generator=generator, dtype=torch.double)
    chance = torch.sigmoid(2.0 * features @ true_weight)
    return features, torch.bernoulli(chance, generator=generator)


def data_loss(weight, data):
    features, labels = data
    return F.binary_cross_entropy_with_logits(features @ weight, labels)


def lower_objective(weight, log_penalty, data):
    return data_loss(weight, data) + 0.5 * (log_penalty.exp() * weight.pow(2)).sum()


def conjugate_gradient(product, right_side, iterations=60, tolerance=1e-10):
    solution = torch.zeros_like(right_side)
    residual = right_side.clone()
    direction = residual.clone()
    square = residual @ residual
    for _ in range(iterations):
        image = product(direction)
        length = square / (direction @ image)
        solution += length * direction
        residual -= length * image
        new_square = residual @ residual
        if new_square < tolerance**2:
            break
        direction = residual + (new_square / square) * direction
        square = new_square
    return solution


@torch.no_grad()
def solve_lower(weight, log_penalty, data, steps=4):
    """Newton's method from the last solution; the weights are moved in place."""
    features, labels = data
    penalty = log_penalty.exp()
    for _ in range(steps):
        chance = torch.sigmoid(features @ weight)
        slope = features.t() @ (chance - labels) / len(labels) + penalty * weight
        curvature = (features.t() * (chance * (1.0 - chance))) @ features / len(labels) + penalty.diag()
        weight -= torch.linalg.solve(curvature, slope)


def upper_gradient(weight, log_penalty, train, valid):
    point = weight.detach().requires_grad_(True)
    upper = data_loss(point, valid)
    (direct,) = torch.autograd.grad(upper, point)

    objective = lower_objective(point, log_penalty, train)
    (slope,) = torch.autograd.grad(objective, point, create_graph=True)

    def hessian_product(vector):
        return torch.autograd.grad(slope, point, vector, retain_graph=True)[0]

    adjoint = conjugate_gradient(hessian_product, direct)
    (cross,) = torch.autograd.grad(slope, log_penalty, adjoint)
    return upper.item(), cross.neg()


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(4)
    true_weight = torch.zeros(FEATURES, dtype=torch.double)
    true_weight[:USEFUL] = torch.tensor([1.0, -0.8, 0.6, -1.2])
    train, valid, test = (make_set(n, true_weight, generator) for n in (100, 300, 1000))

    weight = torch.zeros(FEATURES, dtype=torch.double)
    log_penalty = torch.full((FEATURES,), -3.0, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.RMSprop([log_penalty], lr=0.05)
    history = []
    for index in range(80):
        solve_lower(weight, log_penalty, train)
        if index == 0:
            first = data_loss(weight, test).item()
        value, gradient = upper_gradient(weight, log_penalty, train, valid)
        log_penalty.grad = gradient
        optimizer.step()
        log_penalty.data.clamp_(-8.0, 4.0)
        history.append(value)
        if index % 20 == 0:
            print(f"round {index:2d}  validation loss {value:.4f}")
    solve_lower(weight, log_penalty, train)
    last = data_loss(weight, test).item()
    print(f"mean log penalty: useful {log_penalty[:USEFUL].mean().item():.2f}, other {log_penalty[USEFUL:].mean().item():.2f}")
    print(f"test loss {first:.4f} -> {last:.4f}")
    return train, valid, weight, log_penalty, history, first, last


if __name__ == "__main__":
    train, valid, weight, log_penalty, history, first, last = main()
