import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("start = self.model.state_dict()", "start = copy.deepcopy(self.model.state_dict())")


def moved(prog, rate):
    """How far one meta step moves the weights, relative to the move for rate 1."""
    def step(r):
        torch.manual_seed(0)
        model = prog["Regressor"]()
        first = flat(model).clone()
        task = prog["SineTask"](torch.Generator().manual_seed(5))
        prog["Reptile"](model, outer_lr=r).meta_step(task, 0.0)
        return (flat(model) - first).norm().item()
    return step(rate) / step(1.0)


bad, good = run("sine_reptile"), run("sine_reptile", FIX)
for rate in (0.0, 0.1, 0.5):
    print(rate, moved(bad, rate), moved(good, rate))
    assert abs(moved(bad, rate) - 1.0) < 1e-4  # the outer rate has no effect: the step is always the whole way
    assert abs(moved(good, rate) - rate) < 1e-3
captured = run("sine_reptile", ("def main(iterations=260)", "def main(iterations=2)"), capture=("meta_step",)).locals["meta_step"]
for name in captured["start"]:
    assert captured["start"][name].data_ptr() == captured["adapted"][name].data_ptr()
print("before/after", bad["error_before"], bad["error_after"], "repaired", good["error_before"], good["error_after"])
assert good["error_after"] < 0.6 * bad["error_after"]
