import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("silo_digits", capture=("local_update",))
good = run("silo_digits", ("p.detach() for name", "p.detach().clone() for name"), capture=("local_update",))
pb, pg = bad.locals["local_update"]["prox"].item(), good.locals["local_update"]["prox"].item()
print("prox at last step", pb, pg)
print("drift/acc last", bad["history"][-1], good["history"][-1])
aliased = all(v.data_ptr() == dict(bad["worker"].named_parameters())[k].data_ptr() for k, v in bad.locals["local_update"]["server"].items())
nomu = run("silo_digits", ("MU = 0.4", "MU = 0.0"))
same = nomu["history"] == bad["history"]
print("aliased", aliased, "same as MU=0", same)
assert aliased and same and pb == 0.0 and pg > 1e-3
assert good["history"][0][0] < 0.9 * bad["history"][0][0]
