import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("grad_outputs=probe, retain_graph=True)", "grad_outputs=probe, create_graph=True)")


def gradient_against_differences(program):
    """Relative error of the directional derivative from backward, against central differences, in float64."""
    torch.manual_seed(0)
    flow = program["ContinuousFlow"](steps=3).double()
    x = program["ring_of_blobs"](40).double()

    def loss():
        torch.manual_seed(1)  # the same probe each time
        return -flow.log_prob(x).mean()

    loss().backward()
    assert all(p.grad is not None for p in list(flow.parameters())[:-1])
    direction = [torch.randn_like(p) for p in flow.parameters()]
    slope = sum((p.grad * d).sum() for p, d in zip(flow.parameters(), direction)).item()
    values = []
    for sign in (1, -1):
        for p, d in zip(flow.parameters(), direction):
            p.data.add_(d, alpha=sign * 1e-5)
        values.append(loss().item())
        for p, d in zip(flow.parameters(), direction):
            p.data.sub_(d, alpha=sign * 1e-5)
    numeric = (values[0] - values[1]) / 2e-5
    return abs(slope - numeric) / abs(numeric)


def trace_has_graph(program):
    flow, x = program["flow"], program["valid"][:10]
    middle = x.clone().requires_grad_(True)
    velocity, trace = flow.velocity_and_trace(0.5, middle, torch.ones_like(x))
    return velocity.requires_grad, trace.requires_grad


wrong, fixed = run("flow_density"), run("flow_density", FIX)
assert trace_has_graph(wrong) == (True, False)
assert trace_has_graph(fixed) == (True, True)
bad, good = gradient_against_differences(wrong), gradient_against_differences(fixed)
print("error of the gradient", bad, good)
assert bad > 0.1 and good < 1e-5
print("held out", wrong["history"], fixed["history"])
assert wrong["history"][-1] > wrong["history"][0] + 3  # the reported NLL rises
assert fixed["history"][-1] < fixed["history"][0] - 0.2  # and falls when repaired
