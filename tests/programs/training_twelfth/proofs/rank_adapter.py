import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("        elif mode:\n            self.merged = False",
       "        elif mode and self.merged:\n            self.weight.data -= self.scaling * (self.lora_B @ self.lora_A).data\n"
       "            self.merged = False")
a = run("rank_adapter")
b = run("rank_adapter", FIX)


def stray(r):
    """Relative change of the frozen base weight after going back to training mode, and rank of the whole update."""
    out = []
    r["net"].train()
    for name, w0 in r["pretrained"].items():
        diff = r["net"].get_submodule(name).weight - w0
        out.append((diff.norm() / w0.norm()).item())
    return max(out), torch.linalg.matrix_rank(diff, atol=1e-2 * diff.norm().item()).item()


sa, sb = stray(a), stray(b)
print("frozen weight drift: as written", sa, "repaired", sb)
print("final valid mse: as written", a["history"][-1], "repaired", b["history"][-1])
assert sa[0] > 0.5 and sb[0] < 1e-5
assert sa[1] > a["RANK"]
assert a["history"][-1] > 1.3 * b["history"][-1]
