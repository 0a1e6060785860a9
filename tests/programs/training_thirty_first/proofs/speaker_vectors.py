import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = (".sum(dim=-1).sqrt()", ".sum(dim=-1).clamp(min=1e-12).sqrt()")
written, repaired = run("speaker_vectors"), run("speaker_vectors", repair)
torch.manual_seed(21)
initial = flat(written["SpeakerEncoder"]())
assert torch.equal(flat(written["trained"]), initial)  # not one step is taken
assert rel(flat(repaired["trained"]), initial) > 0.1
assert all(torch.isfinite(torch.tensor(written["curve"])))
mean = lambda r, s: sum(r["curve"][s]) / len(r["curve"][s])
early, late = slice(0, 30), slice(-30, None)
assert abs(mean(written, late) - mean(written, early)) < 0.1 * mean(written, early)
assert mean(repaired, late) < 0.75 * mean(repaired, early), (mean(repaired, early), mean(repaired, late))
rate = lambda r: r["identification_rate"](r["trained"], seed=77)
assert rate(repaired) > rate(written) + 0.1, (rate(repaired), rate(written))
# the gradient is NaN from the first batch on although the loss is finite
vectors = torch.nn.functional.normalize(torch.randn(8, 4), dim=-1).requires_grad_()
loss = written["batch_hard_loss"](vectors, torch.arange(4).repeat_interleave(2))
loss.backward()
assert torch.isfinite(loss) and torch.isnan(vectors.grad).all()
print("ok", rate(written), rate(repaired))
