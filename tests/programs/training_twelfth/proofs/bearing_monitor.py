import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("bearing_monitor")
good = run("bearing_monitor", ("momentum=0.99", "momentum=0.01"))
print(bad.output, good.output)
mean = lambda h, k: sum(e[k] for e in h[-4:]) / 4
print("train loss", mean(bad["history"], 0), mean(good["history"], 0))
print("valid loss", mean(bad["history"], 2), mean(good["history"], 2))
print("valid acc ", mean(bad["history"], 3), mean(good["history"], 3))
assert abs(mean(bad["history"], 0) - mean(good["history"], 0)) < 0.02
assert mean(bad["history"], 2) > 1.5 * mean(good["history"], 2)
assert mean(bad["history"], 3) < mean(good["history"], 3) - 0.05
