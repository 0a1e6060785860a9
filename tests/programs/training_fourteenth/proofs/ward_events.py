import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("ward_events")
good = run("ward_events", ("h_n.view(batch, -1)", "h_n.transpose(0, 1).reshape(batch, -1)"))
print("accuracy as written", bad["accuracy"], "repaired", good["accuracy"])


def leak(r):
    """Gradient of patient 0's logit with respect to the other patients' embeddings' codes."""
    torch.manual_seed(0)
    m = r["RiskNet"]()
    seen = {}
    m.embed.register_forward_hook(lambda mod, i, o: (o.retain_grad(), seen.__setitem__("e", o))[0])
    codes = torch.randint(1, 40, (4, 6))
    m(codes, torch.full((4,), 6), torch.zeros(4, 4))[0].backward()
    return seen["e"].grad.flatten(1).norm(dim=1)


print("as written", leak(bad), "repaired", leak(good))
assert leak(bad)[1] > 1e-4 and leak(good)[1:].abs().max() == 0
assert good["accuracy"] - bad["accuracy"] > 0.08
