import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("hospital_rounds")
same = all(torch.equal(s[k], bad["uploads"][0][1][k]) for _, s in bad["uploads"] for k in s)
ptr = len({s["head.weight"].data_ptr() for _, s in bad["uploads"]})
equals_last = max((bad["server"].state_dict()[k] - bad["worker"].state_dict()[k]).abs().max().item() for k in bad["uploads"][0][1])
good = run("hospital_rounds", ("return model.state_dict()", "return {k: v.clone() for k, v in model.state_dict().items()}"))
print("uploads identical:", same, "distinct storages:", ptr, "server minus last client:", equals_last)
print("last accuracy", bad["history"][-1], "repaired", good["history"][-1])
assert same and ptr == 1 and equals_last < 1e-5
assert good["history"][-1] > bad["history"][-1] + 0.1
