import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

fix = ("grad_move = grad_output\n", "grad_move = grad_output.clone()\n")
clamp = ("RateLimit.apply(move, DT * MAX_RATE)", "move.clamp(-DT * MAX_RATE, DT * MAX_RATE)")
as_written = run("valve_records")
repaired = run("valve_records", fix)
builtin = run("valve_records", clamp)

# the gradient at the start: as written it is not the one of torch.clamp, with clone() it is
def gradient(*edits):
    m = run("valve_records", *edits, as_main=False)
    model = m["Valve"](40)
    (model(as_written["commands"]) - as_written["logs"]).pow(2).mean().backward()
    return model.initial.grad.clone()

wrong, right, reference = gradient(), gradient(fix), gradient(clamp)
print("error of the gradient", rel(wrong, reference), rel(right, reference))
assert rel(right, reference) < 1e-5 and rel(wrong, reference) > 0.3
lost = (wrong == 0) & (reference != 0)
print("initial positions with gradient 0 as written:", int(lost.sum()), "of", int((reference != 0).sum()))
assert lost.sum() > 10

print(as_written["history"][-1], repaired["history"][-1], builtin["history"][-1],
      as_written["start_error"], repaired["start_error"])
assert as_written["history"][-1] > 3 * repaired["history"][-1]
assert abs(repaired["history"][-1] - builtin["history"][-1]) < 1e-3 * builtin["history"][-1] + 1e-6
