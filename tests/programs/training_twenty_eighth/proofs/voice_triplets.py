import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

written = run("voice_triplets")
fixed = run("voice_triplets", ("sum(dim=-1).sqrt()", "sum(dim=-1).clamp(min=1e-12).sqrt()"))

# as written, no parameter ever leaves its initial value: every step was skipped
torch.manual_seed(11)
initial = flat(written["SpeakerEncoder"]())
assert torch.equal(flat(written["model"]), initial)
assert rel(flat(fixed["model"]), initial) > 0.1

# because the gradient is NaN on a batch whose loss is finite
for result, finite in ((written, False), (fixed, True)):
    torch.manual_seed(11)
    model = result["SpeakerEncoder"]()
    rows = next(iter(result["PKSampler"](result["labels"], 8, 4)))
    loss = result["BatchHardTriplet"]()(model(result["x"][rows]), result["labels"][rows])
    loss.backward()
    assert torch.isfinite(loss)
    assert bool(torch.isfinite(flat_grad(model)).all()) is finite

score = [r["recall_at_1"](r["model"], r["x"], r["labels"]) for r in (written, fixed)]
assert score[0] < 0.2 and score[1] > 0.9, score
