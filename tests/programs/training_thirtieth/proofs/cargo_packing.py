import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

torch.set_num_threads(1)
REPAIR = ("terms = log_probs.exp() * log_probs", "terms = log_probs.exp() * log_probs.masked_fill(~allowed, 0.0)")

fresh = run("cargo_packing", ("range(1, 91)", "range(0)"))
written = run("cargo_packing")
repaired = run("cargo_packing", REPAIR)

# The entropy is the same number, its gradient is NaN as written and finite after the repair.
for program, finite in ((written, True), (repaired, False)):
    logits = torch.randn(3, 8, requires_grad=True, generator=torch.manual_seed(0))
    allowed = torch.tensor([True] * 5 + [False] * 2 + [True]).expand(3, 8)
    log_probs = torch.log_softmax(logits.masked_fill(~allowed, float("-inf")), dim=1)
    value = program["entropy_of"](log_probs, allowed).sum()
    assert torch.isfinite(value)
    (gradient,) = torch.autograd.grad(value, logits)
    assert torch.isnan(gradient).any().item() == finite

# So every step is skipped: no weight moves and the optimizer has no state.
assert torch.equal(flat(fresh["packer"]), flat(written["packer"]))
assert len(written["optimizer"].state) == 0
assert not torch.equal(flat(fresh["packer"]), flat(repaired["packer"]))
print(written.output); print(repaired.output)
def score(program):
    torch.manual_seed(1)
    with torch.no_grad():
        return torch.stack([program["episode"](program["packer"], program["holds"])[3].sum(0).mean() for _ in range(20)]).mean().item()
a, b = score(written), score(repaired)
print(f"worth of sampled packings: as written {a:.3f}, repaired {b:.3f}")
assert b > a + 0.1
