import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

ST = "        # straight-through estimator\n        quantized = z + (quantized - z).detach()\n\n"
a = run("code_speech")
b = run("code_speech", (ST, ""),
        ("+ self.beta * commitment_loss\n", "+ self.beta * commitment_loss\n        quantized = z + (quantized - z).detach()\n"))
ga, gb = (r["model"].quantizer.embedding.weight.grad for r in (a, b))
wa, wb = (r["model"].quantizer.embedding.weight.abs().max().item() for r in (a, b))
print("codebook grad as written:", ga, "| repaired norm:", gb.norm().item())
print("largest code entry", wa, wb, "(initial bound", 1 / 32, ")")
print("test error", a["test_error"], b["test_error"])
assert ga is None and gb.norm() > 0
assert wa <= 1 / 32 and wb > 0.1
assert a["test_error"] > 1.15 * b["test_error"]
