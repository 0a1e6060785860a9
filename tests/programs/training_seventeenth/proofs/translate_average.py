import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat

bad = run("translate_average")
good = run("translate_average", ("value.detach() for", "value.detach().clone() for"))
gap = [rel(flat(r["averaged"]), flat(r["model"])) for r in (bad, good)]
last = bad["evaluate"](bad["model"], *bad["held_out"])
print("average against last weights", gap, "loss of average", bad["averaged_loss"], good["averaged_loss"], "last", last)
assert all(w["out.weight"].data_ptr() == bad["model"].out.weight.data_ptr() for w in bad["averager"].kept)
assert gap[0] < 1e-6 < 0.02 < gap[1]
assert good["averaged_loss"] < bad["averaged_loss"] - 0.03
