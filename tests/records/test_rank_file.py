"""The traces of all ranks come back from one file as they were, and a file that is none is an error of one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.rank_traces import as_rank, failing, ranks
from support.traces import written_alias

from tensorlens.errors import TraceFileError
from tensorlens.records.model import Trace
from tensorlens.records.rank_file import MAX_WORLD, has_ranks, load_ranks, save_ranks, shared, why_not_one_run
from tensorlens.records.trace_file import dumps, load, loads, save


def saved(traces: list[Trace], folder: Path) -> Path:
    path = folder / "run.json"
    save_ranks(traces, path)
    return path


@pytest.mark.parametrize("traces", [ranks(1), ranks(4, odd=2), failing(3), [*ranks(2), *failing(2)]])
def test_all_ranks_come_back_as_they_were(traces: list[Trace], tmp_path: Path) -> None:
    path = saved(traces, tmp_path)
    assert has_ranks(path)
    assert list(load_ranks(path)) == traces


def test_what_only_python_reads_as_json_comes_back(tmp_path: Path) -> None:
    trace = written_alias("a = x()\nout = a.sin()\nc = out.detach()\nc.zero_()\nout.sum()\n", message="\ud800").trace
    traces = [as_rank(trace, 0, 2, ended=float("inf")), as_rank(trace, 1, 2)]
    assert list(load_ranks(saved(traces, tmp_path))) == traces


def test_ranks_that_did_alike_take_little_room(tmp_path: Path) -> None:
    few, many = (saved(ranks(number), tmp_path).stat().st_size for number in (1, 11))
    save(ranks(1)[0], tmp_path / "one.json")
    assert many - few < (tmp_path / "one.json").stat().st_size


def edited(path: Path, edit: Any) -> Path:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    return path


def put(place: int, **values: Any) -> Any:
    return lambda data: data["ranks"][place].update(values)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda data: data.update(version=7), "in version 7; this tensorlens reads 1"),
        (lambda data: data.update(ranks=[]), "it has no ranks"),
        (lambda data: data.update(ranks=[3]), "a rank is no trace"),
        (put(0, version=9), "is a trace of version 9"),
        (put(1, like=1), "like one that is not there"),
        (put(1, like=-1), "like one that is not there"),
        (put(1, like="0"), "like one that is not there"),
        (put(1, changed=[]), "what a trace does not have"),
        (put(1, changed={"nothing": 1}), "what a trace does not have"),
        (put(1, changed={"events": {"length": 10**12, "but": []}}), "what a trace does not have"),
        (put(1, changed={"events": {"length": -1, "but": []}}), "what a trace does not have"),
        (put(1, changed={"events": {"length": 1, "but": [[5, {"kind": "Gap"}]]}}), "damaged"),
        (put(1, changed={"events": {"length": 1, "but": [[-1, 3]]}}), "no record"),
        (put(1, changed={"script": {"path": 3}}), "damaged"),
        (put(1, changed={"script": {"path": "\ud800", "outcome": "\ud800"}}), "damaged"),
        (put(1, changed={"sites": {"length": 0, "but": []}}), "damaged"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(edit: Any, message: str, tmp_path: Path) -> None:
    path = edited(saved(ranks(2), tmp_path), edit)
    with pytest.raises(TraceFileError, match=message) as raised:
        load_ranks(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = saved(ranks(2), tmp_path)
    path.write_text(path.read_text()[:-10])
    with pytest.raises(TraceFileError, match="cut short"):
        load_ranks(path)


def test_other_commands_say_that_a_file_has_several_ranks(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="has the traces of several ranks: tensorlens view shows it"):
        load(saved(ranks(2), tmp_path))
    save(ranks(1)[0], tmp_path / "one.json")
    assert not has_ranks(tmp_path / "one.json")
    assert not has_ranks(tmp_path / "none.json")


def test_traces_that_are_not_of_one_run_are_named() -> None:
    one, two = ranks(2)

    def why(*traces: Trace) -> str:
        return why_not_one_run([(f"{place}.json", trace) for place, trace in enumerate(traces)])

    assert why(one, two) == ""
    assert why(one, one) == "0.json and 1.json are both of rank 0"
    alone = replace(two, script=replace(two.script, rank=None))
    assert why(one, alone) == why(alone, one).replace("0.json", "1.json")
    assert why(one, alone) == "1.json is not the trace of a rank of a distributed run"
    assert why(one, as_rank(two, 1, 3)).endswith("are of different runs: the number of ranks differs")
    assert why(as_rank(one, 0, 2, "a 0"), as_rank(two, 1, 2, "b 0")).endswith("their launcher gave them other numbers")
    assert why(as_rank(one, 0, 2, "a 0"), two) == ""
    assert why(as_rank(one, 5, 2)) == "0.json is damaged: it can't be of rank 5 of 2"
    assert "can't be of rank" in why(as_rank(one, 0, MAX_WORLD + 1))
    changed = replace(two, sources={file: f"{text}\n# new" for file, text in two.sources.items()})
    assert why(one, changed).endswith(".py was changed between them")


def test_equal_records_of_ranks_are_one_object(tmp_path: Path) -> None:
    traces = [*load_ranks(saved(ranks(3, odd=2), tmp_path))]
    copies = [loads(dumps(trace)) for trace in traces]
    found = [*shared(copies)]
    assert found == traces
    assert found[1].events is found[0].events
    equal = [(one, other) for one, other in zip(found[0].tensors, found[2].tensors, strict=False) if one == other]
    assert equal
    assert all(one is other for one, other in equal)
    assert found[2].tensors != found[0].tensors
    assert copies[1].events is not copies[0].events
