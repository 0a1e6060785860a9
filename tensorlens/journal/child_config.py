"""Describes a traced run to the child process that makes it: one record, passed as JSON on the command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tensorlens.journal.process_folder import Following
from tensorlens.records.step_choice import StepChoice


@dataclass(frozen=True, slots=True)
class Intervention:
    """Changes what one call does: the call whose expression is at this place of this file.

    `find_writes` changes nothing: it compares watched memory after each line that runs between this call and the next.
    """

    kind: Literal["keep_copies", "retain_graph", "record_gradients", "skip_write", "find_writes"]
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class LossTerms:
    """The terms of the loss of one backward pass, by the sequence numbers of their nodes."""

    root: int  # of the loss
    terms: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class GradientColumns:
    """A gradient whose columns are differentiated alone, before a pass that differentiates the sum of them."""

    roots: tuple[int, int]  # sequence numbers of nodes, the end exclusive: the root of the pass has one of them


Measurement = LossTerms | GradientColumns
"""What a second run measures at a backward pass."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """Describes a run whose gradients are compared with those of other runs of the same program.

    All of them start from the same random state. The first has the program's output; that of the others is dropped.
    """

    seed: int  # of every random generator
    remove_hash_seed: bool  # PYTHONHASHSEED is not in the user's environment, so the script must not see it
    copy_saved_tensors: bool = False  # autograd saves copies
    keep_graphs: bool = False  # every backward pass keeps its graph
    interventions: tuple[Intervention, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()  # (file of the program, file whose text it has in this run)
    compiled: tuple[int, ...] | None = None  # the calls of `torch.compile` that compile, by number; None: all
    eager_random: bool = False  # compiled code draws the random numbers that eager code draws
    in_double: bool = False  # each op is also computed in double precision, beside the program
    unhooked: tuple[int, ...] = ()  # the late hooks, by number, that are not registered
    samples: bool = True  # the gradients of each pass and step are written
    find_nonfinite: bool = False  # the first infinity or NaN is searched
    terms: tuple[Measurement, ...] = ()  # the gradient of each term of these losses is measured, or of columns
    check_functions: bool = False  # the `backward` of each custom Function is compared with its `forward`


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """The program to run, and how to record it."""

    kind: Literal["file", "module", "stdin"]
    name: str
    argv: tuple[str, ...] = ()
    check_claims: bool = False  # check the `#:` lines
    live: bool = False  # the parent shows its progress line on the child's standard error
    overflow_pipe: tuple[int, int] | None = None  # takes the journal when the disk is full
    compared: ComparedRun | None = None
    steps: StepChoice | None = None  # the training steps to record
    training: bool = False  # measure gradients and parameters
    following: Following | None = None  # the processes of the program that are traced, too

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildConfig:
        fields: dict[str, Any] = json.loads(text)
        pipe, compared = fields.get("overflow_pipe"), fields.get("compared")
        fields["argv"] = tuple(fields.get("argv", ()))
        fields["overflow_pipe"] = None if pipe is None else (pipe[0], pipe[1])
        fields["compared"] = None if compared is None else _compared_run(compared)
        fields["steps"] = None if fields.get("steps") is None else StepChoice(**fields["steps"])
        fields["following"] = None if fields.get("following") is None else Following.from_fields(fields["following"])
        return cls(**fields)


def _compared_run(fields: dict[str, Any]) -> ComparedRun:
    interventions = tuple(Intervention(**each) for each in fields.pop("interventions", ()))
    sources = tuple((file, text) for file, text in fields.pop("sources", ()))
    for name in ("compiled", "unhooked"):
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    terms = tuple(map(_measurement, fields.pop("terms", ())))
    return ComparedRun(**fields, interventions=interventions, sources=sources, terms=terms)


def _measurement(fields: dict[str, Any]) -> Measurement:
    if "roots" in fields:
        return GradientColumns((fields["roots"][0], fields["roots"][1]))
    return LossTerms(fields["root"], tuple(map(tuple, fields["terms"])))
