import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("birdsong_cnn")
good = run("birdsong_cnn", ("    meter.watch(model)\n    ce_sum", "    ce_sum"),
           ("    meter = ActivityMeter()\n", "    meter = ActivityMeter()\n    meter.watch(model)\n"))
print(bad.output, good.output)
n_bad = len(bad["model"].act1._forward_hooks)
n_good = len(good["model"].act1._forward_hooks)
print(n_bad, n_good, bad["test_ce"], good["test_ce"], bad["test_acc"], good["test_acc"])
assert n_bad == 20 and n_good == 1
assert bad["test_ce"] > 1.3 * good["test_ce"]
