import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

COPY = ("self.front.weight.data.copy_(gabor_bank(N_FILTERS, KERNEL))", "self.front.weight = gabor_bank(N_FILTERS, KERNEL)")
written = run("tone_frontend")
repaired = run("tone_frontend", COPY)
skipped = run("tone_frontend", (COPY[0], "pass"))
bank = written["gabor_bank"](written["N_FILTERS"], written["KERNEL"])

# right after construction the front end is not the bank, and is what it would be without the line
torch.manual_seed(17)
fresh = written["ToneNet"]().front.weight.detach()
torch.manual_seed(17)
without = skipped["ToneNet"]().front.weight.detach()
torch.manual_seed(17)
banked = repaired["ToneNet"]().front.weight.detach()
assert torch.equal(fresh, without) and rel(fresh, bank) > 0.5
assert rel(banked, bank) < 1e-5
assert all(torch.equal(a, b) for a, b in zip(written["model"].parameters(), skipped["model"].parameters()))
print("test accuracy", written["test_accuracy"], "->", repaired["test_accuracy"])
assert repaired["test_accuracy"] > written["test_accuracy"] + 0.1
