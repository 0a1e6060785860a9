import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import re
SNAP = ("is_new = (torch", "start = model.tokens.weight.detach().clone()\nis_new = (torch")
FIX = ("[model.tokens.weight], lr=1e-2, weight_decay=0.1", "[model.tokens.weight], lr=1e-2, weight_decay=0.0")
out = []
for r in (run("domain_tokens", SNAP), run("domain_tokens", SNAP, FIX)):
    old = r["OLD"]
    out.append((rel(r["model"].tokens.weight.detach()[:old], r["start"][:old]),
                float(re.search(r"adapted: general perplexity ([\d.]+)", r.output).group(1)),
                float(re.search(r"domain perplexity ([\d.]+)\n\Z|, domain perplexity ([\d.]+)", r.output).group(2))))
print("(change of old rows, general ppl, domain ppl):", out)
sys.exit(0 if out[0][0] > 0.2 and out[1][0] == 0.0 and out[0][1] > out[1][1] * 1.03 else 1)
