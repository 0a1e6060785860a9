import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

# embed() runs without grad for sr too, so this loss term reaches no parameter.
bad = run("sharp_upscale")
good = run("sharp_upscale", ("    @torch.no_grad()\n    def embed", "    def embed"))
none = run("sharp_upscale", ("PERCEPTUAL_WEIGHT = 1.0, 1.0", "PERCEPTUAL_WEIGHT = 1.0, 0.0"))
print("requires_grad of the term", bad["percep"].requires_grad, good["percep"].requires_grad)
print("distance", bad["distance"], good["distance"], "with weight 0", none["distance"])
assert not bad["percep"].requires_grad and good["percep"].requires_grad
assert abs(bad["distance"] - none["distance"]) < 1e-6
assert good["distance"] < 0.8 * bad["distance"]
