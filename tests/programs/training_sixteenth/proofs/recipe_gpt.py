import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

wrong = run("recipe_gpt")
def sees(result):
    m, d = result["model"], result["data"]
    a = d[:48][None].clone(); b = a.clone(); b[0, 30:] = d[500:518]
    with torch.no_grad():
        oa, ob = m(a)[0], m(b)[0]
        c = a.clone(); c[0, :10] = d[700:710]
        oc = m(c)[0]
    return (oa[:30] - ob[:30]).abs().max().item(), (oa[40:] - oc[40:]).abs().max().item()
fixed = run("recipe_gpt", ("attn_mask=self.causal_mask[:t, :t]", "attn_mask=~self.causal_mask[:t, :t]"))
print("change before/after changed tokens: as written", sees(wrong), "repaired", sees(fixed))
print("val", wrong["val"], fixed["val"], "known words", wrong["valid"], len(wrong["words"]), "repaired", fixed["valid"], len(fixed["words"]))
assert sees(wrong)[0] > 0.1 and sees(wrong)[1] == 0.0
assert sees(fixed)[0] < 1e-4 and sees(fixed)[1] > 0.01
assert wrong["val"] < 0.5 * fixed["val"]
assert wrong["valid"] / len(wrong["words"]) < 0.5 and fixed["valid"] / len(fixed["words"]) > 0.8
