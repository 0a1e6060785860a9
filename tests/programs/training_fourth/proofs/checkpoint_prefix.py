import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ('load_state_dict(checkpoint["model"], strict=False)',
       'load_state_dict({k.removeprefix("module."): v for k, v in checkpoint["model"].items()})')
bad, good = run("checkpoint_prefix"), run("checkpoint_prefix", fix)


def same(r):
    return [torch.equal(v, r["saved"]["module." + k]) for k, v in r["encoder"].state_dict().items()]


print("loaded", same(bad), same(good), "acc", bad["acc"], good["acc"])
assert not any(same(bad)) and all(same(good))
assert not set(bad["saved"]) & set(bad["encoder"].state_dict())
assert good["acc"] > bad["acc"] + 0.1
