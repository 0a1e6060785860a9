import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import re, torch
FIX = ("        pooled[dst] += messages\n", "        pooled.index_add_(0, dst, messages)\n")
acc = [float(re.search(r"test accuracy ([\d.]+)", r.output).group(1))
       for r in (run("citation_graph"), run("citation_graph", FIX))]
m = run("citation_graph", as_main=False)
layer = m["CitationLayer"](2, 2)
with torch.no_grad():
    layer.own.weight.zero_(); layer.own.bias.zero_(); layer.neighbour.weight.copy_(torch.eye(2))
    h = torch.tensor([[0., 0.], [1., 3.], [5., 7.]])
    got = layer(h, torch.tensor([[1, 2], [0, 0]]))[0]
print("accuracy wrong/fixed", acc, "mean of (1,3),(5,7):", got.tolist())
sys.exit(0 if acc[1] > acc[0] + 0.05 and not torch.allclose(got, torch.tensor([3., 5.])) else 1)
