import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
N = "leaf_staged_finetune"
def drift(*edits):
    s = run(N, *edits)["trainer"].snapshots
    return rel(s[7]["stem.0.weight"], s[3]["stem.0.weight"]), rel(s[7]["trunk.0.weight"], s[5]["trunk.0.weight"])
bad, good = drift(), drift(("zero_grad(set_to_none=False)", "zero_grad()"))
assert min(bad) > 0.01 and max(good) == 0, (bad, good)
print(f"proved: {N}")
