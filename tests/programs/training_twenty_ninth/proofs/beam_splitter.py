import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

as_written = run("beam_splitter")
repaired = run("beam_splitter", ("return 2.0 * math.pi * shown", "return 2.0 * math.pi * (self.turns + (shown - self.turns).detach())"))

# the mask is the design variable; rounding gives it a gradient of exactly 0, and it stays what it was drawn as
turns = as_written["model"].modulator.turns
torch.manual_seed(3)
drawn = torch.rand(48, 48)
assert turns.grad is not None and turns.grad.abs().max() == 0
assert torch.equal(turns.detach(), drawn)
# the two scalars do move
assert as_written["model"].lens.item() != 0.5

# with the straight-through estimate the mask moves and the design works
fixed = repaired["model"].modulator.turns
assert fixed.grad.abs().max() > 0 and (fixed.detach() - drawn).abs().mean() > 0.05
print(as_written["efficiency"], repaired["efficiency"], as_written["losses"][-1], repaired["losses"][-1])
assert as_written["efficiency"] < 0.1 and repaired["efficiency"] > 0.5
