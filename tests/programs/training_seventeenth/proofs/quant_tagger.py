import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("quant_tagger")
good = run("quant_tagger", ("            peak = torch.maximum(peak, batch_peak)\n",
                            "            peak = torch.maximum(peak, batch_peak)\n            self.peak.copy_(peak)\n"))
peaks = [[b.item() for b in r["model"].buffers()] for r in (bad, good)]
print("ranges", peaks, "loss", bad["held_loss"], good["held_loss"], "accuracy", bad["accuracy"], good["accuracy"])
assert peaks[0] == [1.0] * 3 and all(p > 1.5 for p in peaks[1])
assert good["held_loss"] < 0.5 * bad["held_loss"] and good["accuracy"] > bad["accuracy"]
