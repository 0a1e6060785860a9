import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

FIX = ("_, valid_titles = encode(valid.title)",
       "valid_titles = torch.as_tensor(np.searchsorted(title_vocab, valid.title))")
bad = run("lantern_shelf", capture=("main",)).locals["main"]
good = run("lantern_shelf", FIX, capture=("main",)).locals["main"]

# the codes of the held-out titles do not mean the same books as in training
decoded_bad = bad["title_vocab"][bad["valid_titles"].numpy()]
decoded_good = good["title_vocab"][good["valid_titles"].numpy()]
assert (decoded_good == good["valid"].title).all()
agree = (decoded_bad == bad["valid"].title).mean()
print("held-out titles that decode to themselves", agree, "recall", bad["best"], good["best"])
assert agree < 0.2
assert good["best"] > 1.5 * bad["best"]
# training is the same: only the evaluation differs
assert torch.equal(bad["model"].title.weight, good["model"].title.weight)
