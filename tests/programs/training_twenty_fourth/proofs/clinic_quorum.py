import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)
FIX = ("weight = count / self.n_samples", "weight = count / sum(c for _, c in updates)")
bad, good = run("clinic_quorum"), run("clinic_quorum", FIX)


def identity(r):
    """Averaging identical states has to give the same state back."""
    s = r["server"]
    state = s.model.state_dict()
    out = s.aggregate([(state, len(c)) for c in s.clinics[:6]])
    return max(rel(out[k], state[k]) for k in state)


print("error of averaging equal states", identity(bad), identity(good))
print("test loss, acc", bad["test_loss"], bad["test_acc"], "|", good["test_loss"], good["test_acc"])
print(bad.output, good.output)
assert identity(bad) > 0.3 and identity(good) < 1e-5
assert bad["test_loss"] > good["test_loss"] + 0.05
assert good["test_acc"] > bad["test_acc"] + 0.01
