import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The rows of the old styles get a zero gradient, but weight decay makes Adam move them by a full step each time.
NO_DECAY = ("torch.optim.Adam(rows, lr=2e-2, weight_decay=1e-4)", "torch.optim.Adam(rows, lr=2e-2)")
SNAPSHOT = ('    print("new style")\n',
            '    global before\n    import copy\n    before = copy.deepcopy(net.state_dict())\n    print("new style")\n')


def measure(*edits):
    state = run("style_bank", SNAPSHOT, *edits)
    net, criterion = state["net"], state["criterion"]
    old = slice(0, state["STYLES"] - 1)
    now = net.state_dict()
    tables = [k for k in now if k.endswith(("scale", "shift"))]
    moved = {k: (now[k][old] - state["before"][k][old]).abs().max().item() for k in tables}
    new_moved = min((now[k][-1] - state["before"][k][-1]).abs().max().item() for k in tables)
    torch.manual_seed(2)
    content, style = state["contents"](12), torch.arange(3).repeat(4)
    with torch.no_grad():
        after = criterion(net(content, style), content, style)[0].item()
        net.load_state_dict(state["before"])
        first = criterion(net(content, style), content, style)[0].item()
    return moved, new_moved, first, after


moved, new_moved, first, after = measure()
print(moved, new_moved, first, after)
assert min(v for k, v in moved.items() if k.endswith("scale")) > 0.3 and new_moved > 0
assert after > 2 * first

moved, new_moved, first, after = measure(NO_DECAY)
print(moved, new_moved, first, after)
assert max(moved.values()) == 0 and new_moved > 0.05
assert after == first
