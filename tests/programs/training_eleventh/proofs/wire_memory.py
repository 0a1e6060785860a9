import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

# repaired as TGN does: keep the raw last message, apply the cell when the memory is read, store the result detached afterwards
fix = [
    ("        return self.state[nodes]\n",
     "        own, other, feats = self.prev_own[nodes], self.prev_other[nodes], self.prev_feats[nodes]\n"
     "        new = self.cell(self.message(torch.cat([feats, other], -1)), own)\n"
     "        return torch.where(self.seen[nodes, None], new, self.state[nodes])\n"),
    ("        own, other = self.state[nodes], self.state[others]\n        updated = self.cell(self.message(torch.cat([feats, other], -1)), own)\n        self.state[nodes] = updated.detach()\n",
     "        with torch.no_grad():\n"
     "            own, other = self.read(nodes), self.read(others)\n"
     "            self.state[nodes] = own\n"
     "            self.prev_own[nodes], self.prev_other[nodes], self.prev_feats[nodes] = own, other, feats\n"
     "            self.seen[nodes] = True\n"),
    ("        self.state.zero_()\n",
     "        self.state.zero_()\n        n, dim = self.state.shape\n"
     "        self.prev_own, self.prev_other, self.prev_feats = torch.zeros(n, dim), torch.zeros(n, dim), torch.zeros(n, MSG)\n"
     "        self.seen = torch.zeros(n, dtype=torch.bool)\n"),
]
a = run("wire_memory")
init = run("wire_memory", ("range(6)", "range(0)"))
b = run("wire_memory", *fix)
print(a.output, b.output)
for (n, p), q in zip(a["memory"].named_parameters(), init["memory"].parameters()):
    assert p.grad is None and torch.equal(p, q), n
assert all(p.grad is not None for p in b["memory"].parameters())
print("AUC", a["val_auc"], b["val_auc"])
assert b["val_auc"] > a["val_auc"] + 0.02
