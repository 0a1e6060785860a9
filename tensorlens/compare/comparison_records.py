"""Defines the records of a comparison, which go from the probing child to the renderers, and their JSON.

`docs/comparison.schema.json` describes the JSON; a test checks real comparisons against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

FORMAT = "tensorlens.comparison"
VERSION = 1

Value = bool | int | float | str | None
Group = Literal["result", "graph", "writing", "cost"]
Level = Literal["basic", "usual", "detail"]  # shown: always; if the operands differ; only with --all
Layout = Literal["contiguous", "transposed", "every_second", "first_columns"]
Values = Literal["signed", "positive"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one probe: a value to compare, a text to show, and the error if there was one."""

    value: Value
    text: str
    error: str = ""  # "RuntimeError: ...", as PyTorch words it
    code: str = ""  # the code of the error's page


@dataclass(frozen=True, slots=True)
class Operand:
    """One of the compared operations: the text that the user typed, and the code that runs for it."""

    operand: str  # "view"
    call: str  # "x.view(-1)"
    kind: str  # "method", "property", "function", "context", "code", "file"


@dataclass(frozen=True, slots=True)
class Input:
    """The properties of a tensor `x` that every operand is applied to."""

    id: str  # "x", "leaf", "no_grad", "transposed", "leaf+view", ...
    label: str  # "a leaf x"
    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool
    leaf: bool
    layout: Layout = "contiguous"  # "every_second": as `b[..., ::2]`; "first_columns": as `b[..., :n]` of a wider b
    view: bool = False
    values: Values = "signed"

    @property
    def contiguous(self) -> bool:
        return self.layout == "contiguous"


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer of one probe for one operand on one input, both as indices into the tables of the comparison."""

    operand: int
    input: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Row:
    """The answers of one probe. `values` has one per operand, on the main input; `evidence` has all, on every input."""

    probe: str
    label: str
    group: Group
    level: Level
    values: tuple[Value, ...]
    differs: bool
    evidence: tuple[Observation, ...]

    def answers(self, operand: int) -> dict[int, Answer]:
        """Returns input index -> answer, for one operand."""
        return {each.input: each.answer for each in self.evidence if each.operand == operand}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All results of `compare`. `main` is the index of the input that `Row.values` belong to."""

    tensorlens: str
    torch: str
    operands: tuple[Operand, ...]
    inputs: tuple[Input, ...]
    main: int
    rows: tuple[Row, ...]
    summary: str

    def row(self, probe: str) -> Row | None:
        """Returns the row of a probe; None if nothing was measured for it."""
        return next((row for row in self.rows if row.probe == probe), None)


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Returns a comparison as a JSON object."""
    rows = [
        {
            "probe": row.probe,
            "label": row.label,
            "group": row.group,
            "level": row.level,
            "values": list(row.values),
            "differs": row.differs,
            "evidence": [
                {"operand": each.operand, "input": each.input, **asdict(each.answer)} for each in row.evidence
            ],
        }
        for row in comparison.rows
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "tensorlens": comparison.tensorlens,
        "torch": comparison.torch,
        "operands": [asdict(operand) for operand in comparison.operands],
        "inputs": [
            {**asdict(each), "shape": list(each.shape), "contiguous": each.contiguous} for each in comparison.inputs
        ],
        "main_input": comparison.main,
        "rows": rows,
        "summary": comparison.summary,
    }


def from_dict(data: Mapping[str, Any]) -> Comparison:
    """Reads the comparison that `to_dict` wrote."""
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ValueError(f"not a {FORMAT} of version {VERSION}")
    return Comparison(
        tensorlens=data["tensorlens"],
        torch=data["torch"],
        operands=tuple(Operand(**each) for each in data["operands"]),
        inputs=tuple(input_from(each) for each in data["inputs"]),
        main=data["main_input"],
        rows=tuple(_row(each) for each in data["rows"]),
        summary=data["summary"],
    )


def input_from(data: Mapping[str, Any]) -> Input:
    """Reads an `Input` from its JSON object."""
    fields = {key: value for key, value in data.items() if key != "contiguous"}
    return Input(**{**fields, "shape": tuple(data["shape"])})


def _row(data: Mapping[str, Any]) -> Row:
    evidence = (
        Observation(each["operand"], each["input"], Answer(each["value"], each["text"], each["error"], each["code"]))
        for each in data["evidence"]
    )
    values = tuple(data["values"])
    return Row(data["probe"], data["label"], data["group"], data["level"], values, data["differs"], tuple(evidence))
