import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import math

# The loader puts the two crops of image i in rows 2i and 2i+1; the loss takes row j + n/2 as the partner of row j.
bad = run("glyph_pairs")
good = run("glyph_pairs", ("partner = (torch.arange(n) + n // 2) % n", "partner = torch.arange(n) ^ 1"))
good2 = run("glyph_pairs", ("batch = views.flatten(0, 1)", "batch = views.transpose(0, 1).flatten(0, 1)"))
last = [r["total"] / len(r["loader"]) for r in (bad, good, good2)]
print("last loss", last, "uniform", math.log(127), "accuracy", bad["accuracy"], good["accuracy"], good2["accuracy"])
assert last[0] > math.log(127) - 0.25
assert last[1] < last[0] - 1.0 and abs(last[1] - last[2]) < 0.3
