import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("    model.train()\n", "    model.train()\n    if site != 'pilot':\n        model.encoder.eval()\n")
bad, good = run("bearing_sites")["report"], run("bearing_sites", fix)["report"]
print("as written", bad)
print("encoder kept in eval for the second site", good)
assert good["pilot after rollout"] == good["pilot at release"] == bad["pilot at release"]
assert bad["pilot after rollout"] < bad["pilot at release"] - 0.05
