"""Records the user's functions that autograd calls back: hooks and the methods of custom Functions.

A `Function` records where one is defined, a `Registration` where it was given to autograd, a `Run` how one call of it
ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.records.fields import FunctionId, RegistrationId, SiteId, TensorId

Ending = Literal["returned", "raised", "refused"]


@dataclass(frozen=True, slots=True)
class Function:
    """A user function that autograd calls back, or the class of a custom `autograd.Function`."""

    id: int
    name: str  # "average", "Scale.backward", "<lambda>", "Scale"
    defined: SiteId | None  # its `def` line, lambda's body or `class` line; None: not in the user's code
    returns: tuple[SiteId, ...]  # its `return` statements
    least: int  # positional arguments that it requires
    most: int | None  # positional arguments that it accepts; None: any number


@dataclass(frozen=True, slots=True)
class Registration:
    """The place where the user gave a function to autograd: registered a hook, or called a custom Function."""

    id: int
    function: FunctionId
    kind: str  # "tensor hook", "module backward hook", "pack hook", "backward", "class", ...
    site: SiteId
    target: int | None  # the tensor id that it was registered on, or a number for the module or operator


@dataclass(frozen=True, slots=True)
class ReturnedValue:
    """A value that a callback returned."""

    tensor: TensorId | None
    type: str


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a callback by autograd."""

    index: int  # it ended before the event of this index
    registration: RegistrationId
    returned: SiteId | None  # the `return` statement that ended it
    values: tuple[ReturnedValue, ...]  # its result, or the items of a tuple
    given: tuple[TensorId, ...]  # its tensor arguments
    node: int | None  # of a `backward`: sequence number of the custom Function's node
    ended: Ending  # refused: the call itself raised, because its arguments do not fit


@dataclass(frozen=True, slots=True)
class Callbacks:
    """All callbacks of a run; of very many calls only the latest."""

    functions: tuple[Function, ...] = ()
    registrations: tuple[Registration, ...] = ()
    runs: tuple[Run, ...] = ()
