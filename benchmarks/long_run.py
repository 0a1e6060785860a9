"""A long loop for `scale.py`: OPS ops on 100 different lines, then a mistake if asked. Writes its times to a file."""

import json
import resource
import sys
import time
from pathlib import Path

import torch

OPS, RESULTS, FAILS = int(sys.argv[1]), Path(sys.argv[2]), "fail" in sys.argv[3:]
LINES = 100
_TEN = """
    a = x * 2
    b = a + y
    c = b.sin()
    d = c - a
    e = d.relu()
    f = e * y
    g = f.sum()
    h = torch.exp(y)
    i = h - y
    j = i * 0.5
"""


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak() -> float:
    """Returns the most resident memory so far, in MB. `ru_maxrss` may be that of the process that started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


module = RESULTS.with_name("hundred_lines.py")  # the lens must take the lines for the user's own
module.write_text(f"import torch\n\n\ndef hundred(x, y):{_TEN * (LINES // 10)}    return b\n")
sys.path.insert(0, str(module.parent))
from hundred_lines import hundred  # type: ignore[import-not-found]  # noqa: E402

x, y = torch.ones(4, requires_grad=True), torch.ones(4)
tenths, memory = [], []
for _ in range(10):
    start = time.perf_counter()
    for _ in range(OPS // LINES // 10):
        hundred(x, y)
    tenths.append(time.perf_counter() - start)
    memory.append(resident())
RESULTS.write_text(json.dumps({"tenths": tenths, "resident": memory, "peak": peak(), "ended": time.time()}))
if FAILS:
    out = x.exp()
    out.mul_(2)
    out.sum().backward()
