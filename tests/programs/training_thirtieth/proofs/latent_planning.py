import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

SAMPLE = ("raw = distribution.sample()", "raw = distribution.rsample()")

torch.set_num_threads(1)
fresh = run("latent_planning", ("range(1, 17)", "range(0)"))
written = run("latent_planning")
repaired = run("latent_planning", SAMPLE)

# As written the imagined rewards have no gradient with respect to any weight of the captain; repaired they have.
for program, expected in ((written, False), (repaired, True)):
    start = program["model"].encoder(program["observations"][0]).detach()
    imagined, _ = program["imagine"](program["model"], program["captain"], start)
    gradients = torch.autograd.grad(imagined.mean(), list(program["captain"].parameters()), allow_unused=True)
    assert all((g is not None and g.abs().sum() > 0) == expected for g in gradients)

# Only the entropy moves the captain: the rows that give the mean action keep their first values exactly.
rows = written["ACT"]
last = lambda program: program["captain"].net[2].weight.detach()
assert torch.equal(last(written)[:rows], last(fresh)[:rows])
assert not torch.equal(last(repaired)[:rows], last(fresh)[:rows])
assert written["entropy"].mean() > 1.1 * fresh["captain"](torch.zeros(1, 8)).entropy().sum()

def score(program):
    torch.manual_seed(0)
    return torch.stack([program["sail"](program["harbour"], program["model"], program["captain"])[2].mean() for _ in range(5)]).mean().item()

first, wrong, right = score(fresh), score(written), score(repaired)
print(f"reward fresh {first:.3f}, as written {wrong:.3f}, repaired {right:.3f}")
print(written.output); print(repaired.output)
assert right > wrong + 0.3
