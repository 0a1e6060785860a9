"""Source files that are hard to read. TensorLens must run each as Python does."""

from __future__ import annotations

_FAILS = "import torch\n{}\nx = torch.ones(2); x @ torch.ones(3)\n"
_NAMES = "größe Ελληνικά кириллица עברית عربي हिन्दी 変数 변수 ไทย 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ª".split()

FAULTS = {"x @ torch.ones(3)", "torch.ones(2) @ torch.ones(3)", "torch.ones(2) \\\n  @ \\\n  torch.ones(3)"}
FAULTS |= {"fi @ torch.ones(3)", "1 / 0"}
"""The expressions that raise in these sources, one of them in each source that runs that far."""

SOURCES: dict[str, bytes] = {
    "nothing": b"",
    "white space alone": b" \n\t\n\x0c\n",
    "a comment alone": b"# nothing else",
    "a mark alone": b"\xef\xbb\xbf",
    "one line without an end": b"import torch; print(torch.ones(1))",
    "an enormous line": b"import torch\nx = torch.tensor([" + b"1.0, " * 100_000 + b"])\nprint(x.sum())\n1 / 0",
    "many lines": b"import torch\n" + b"\n" * 200_000 + b"torch.ones(2) @ torch.ones(3)\n",
    "line ends of Windows": _FAILS.format("y = '''\n'''").replace("\n", "\r\n").encode(),
    "old line ends": b"import torch\rx = torch.ones(1)\rprint(x)\r",
    "line ends of all kinds": b"import torch\r\nx = torch.ones(2)\ry = x * 2\nx @ torch.ones(3)\r\n",
    "form feeds and tabs": b"import torch\n\x0cif True:\n\tx = torch.ones(1)\n\tprint(x)\n",
    "what ends lines of text, not of Python": _FAILS.format("y = 'a\u2028b\u2029c\x85d\x1ce\x0bf\x0cg'").encode(),
    "a form feed before a line": _FAILS.format("\x0c\x0c").encode(),
    "lines that go on": b"import torch\nx = \\\n  torch.ones(2) \\\n  @ \\\n  torch.ones(3)\n",
    "a mark before it": b"\xef\xbb\xbfimport torch\nprint(torch.ones(1))\n",
    "a mark before a failing line": b"\xef\xbb\xbfimport torch; torch.ones(2) @ torch.ones(3)\n",
    "another encoding": b"# coding: utf-16-like\nimport torch\n",
    "an encoding that there is": b"# coding: latin-1\n" + _FAILS.format("é = 'ÿ'").encode("latin-1"),
    "Japanese": b"# coding: shift_jis\n" + _FAILS.format("変数 = '表'").encode("shift_jis"),
    "an encoding that contradicts the mark": b"\xef\xbb\xbf# coding: latin-1\nimport torch\n",
    "16 bits a character": _FAILS.format("").encode("utf-16"),
    "no utf-8": b"import torch\nprint('\xff')\n",
    "half a character": "# coding: utf-8\nx = 'é'".encode()[:-2],
    "surrogates": _FAILS.format("print(ascii('\\ud800'))").encode(),
    "two directions": "import torch\nx\u05d0 = torch.ones(1)  # \u202e reversed\nprint(x\u05d0)\n1 / 0".encode(),
    "names in many scripts": _FAILS.format("\n".join(f"{n} = torch.ones(1); print({n} * 2)" for n in _NAMES)).encode(),
    "names that are written in two ways": "import torch\nﬁ = torch.ones(2)\nfi @ torch.ones(3)\n".encode(),
    "wide and combining characters": _FAILS.format("s = '表e\u0301👩\u200d👩\u200d👧'; torch.ones(1)").encode(),
    "control characters": b"import torch\ns = '\x1b[31m\x07\x08'; torch.ones(2) @ torch.ones(3)  # \x1b[2J\n",
    "markup": b"import torch\ns = '[bold]x[/bold] [/] <b> | ` * _'; torch.ones(2) @ torch.ones(3)  # [link=x]\n",
    "deep nesting": b"import torch\nx = " + b"(" * 150 + b"torch.ones(1)" + b")" * 150 + b"\nprint(x)\n",
    "a deep tree": b"import torch\nx = torch.ones(1)" + b" + 1" * 900 + b"\nprint(x)\n",
    "deep blocks": "".join(f"{' ' * n}if 1:\n" for n in range(30)).encode(),
    "too deep": b"(" * 10_000,
    "a thousand decorators": b"import torch\n"
    + b"@torch.no_grad()\n" * 300
    + b"def f(): return torch.ones(1)\nprint(f())\n",
    "a null byte": b"import torch\nx = 1\0\n",
    "a null byte far behind": b"import torch\n" + b"#\n" * 5_000 + b"\0",
    "no sentence": b"import torch\nx = = 1\n",
    "a string without an end": b"import torch\ns = '''\n\n",
    "a bracket without an end": b"import torch\nx = torch.ones(\n\n",
    "tabs and spaces mixed": b"import torch\nif True:\n\tx = 1\n        y = 2\n",
    "no block": b"import torch\ndef f():\n",
    "return outside": b"import torch\nreturn torch.ones(1)\n",
    "a future too late": b"import torch\nfrom __future__ import annotations\n",
    "a future and a text": b"'text'\nfrom __future__ import annotations\nimport torch\nprint(__doc__, torch.ones(1))\n",
    "what the compiler warns of": b"import torch\nx = torch.ones(1)\nprint(x is 1, '\\d')\nassert (x, 'always')\n",
    "a program that is not Python": b"#!/bin/sh\necho 'not Python' && exit 1\n",
}
