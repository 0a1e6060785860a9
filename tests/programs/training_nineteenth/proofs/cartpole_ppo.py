import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import numpy as np

bad = run("cartpole_ppo")
good = run("cartpole_ppo", ("obs = torch.from_numpy(next_obs)", "obs = torch.from_numpy(next_obs.copy())"),
           ("obs = torch.from_numpy(envs.reset())", "obs = torch.from_numpy(envs.reset().copy())"))
ptr = {o.data_ptr() for o in bad["roll"]["obs"]}, {o.data_ptr() for o in good["roll"]["obs"]}
kinds = [len(np.unique(m["b"]["obs"].numpy(), axis=0)) for m in (bad, good)]
print("distinct memory of 64 stored steps:", len(ptr[0]), len(ptr[1]), "distinct observations of 1024:", kinds)
assert len(ptr[0]) == 1 and len(ptr[1]) == 64 and kinds[0] == 16 and kinds[1] > 1000
length = [np.mean(m["recent"]) for m in (bad, good)]
print("episode length", length)
assert length[0] < 70 and length[1] > 100
