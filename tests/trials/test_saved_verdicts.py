"""`-o FILE.json` keeps what further runs showed, and `view` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorlens.cli.commands import RunSettings, explain, view
from tensorlens.cli.output import Output

PROGRAM = """\
import torch
torch.manual_seed(0)
m = torch.nn.Linear(2, 2)
o = torch.optim.SGD(m.parameters(), 0.1)
h = torch.sigmoid(m(torch.ones(1, 2)))
h += 1
h.sum().backward()
o.step()
"""


def test_the_verdicts_of_both_options_are_saved_and_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script, saved = Path("p.py"), Path("t.json")
    script.write_text(PROGRAM)
    assert explain(None, ["p.py"], Output(path=saved), RunSettings(attempt=True, fix=True)) == 1
    capfd.readouterr()
    assert view(saved, Output(width=100), RunSettings()) == 1
    text = capfd.readouterr().out
    assert "confirmed: with a copy of what line 5 saved, the run ends normally" in text
    assert "help 1: the gradients are right" in text or "tried 1 way to repair it: 1 verified" in text, text
    assert view(saved, Output("json"), RunSettings()) == 1
    report = json.loads(capfd.readouterr().out)
    (finding,) = report["diagnostics"]
    assert finding["confirmed"] is True
    assert finding["fixes"][0]["verdict"] == "verified"
    assert report["tried"]["tried"] >= 1
    again = Path("again.json")
    view(saved, Output(path=again), RunSettings())
    assert again.read_text() == saved.read_text()

    data = json.loads(saved.read_text())
    data["trials"]["diagnostics"][0]["labels"][0]["site"] = 999
    saved.write_text(json.dumps(data))
    with pytest.raises(Exception, match=r"t\.json is a damaged trace: a finding is about what the trace does not have"):
        view(saved, Output(), RunSettings())
