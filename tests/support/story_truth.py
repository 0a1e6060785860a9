"""Checks every sentence of a story against what the lines of the program really did."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator

import torch

from support.random_programs import Run, Seen, Snapshot
from tensorlens.analysis.story.line_events import LineEvent
from tensorlens.analysis.story.tensor_table import TensorRow

_PATH = re.compile(r"[a-z]\w*(\[\d+\]|\.[a-z]\w*)*$")
_ORIGIN = re.compile(
    r"(?P<kind>from |new|view of |same memory as |a deep copy of )(?P<sources>.*?)"
    r"(?: by (?P<nodes>\w+(?:, \w+)*)| in \d+ operations, the last (?P<last>\w+))?"
    r"(?:; (?P<constants>.*) enters? as (?:a constant|constants))?"
    r"(?P<ending>, (?:requires no grad|detached|requires grad|not recorded: requires no grad))?"
)
_WRITE = re.compile(r"changed in place, v(\d+) -> v(\d+)(?:, its grad_fn is now (\w+))?")
_SHARED = re.compile(r"changed through shared memory(, its version stays)?")
_KINDS = {
    "set": "set",
    "added to": "added to",
    "replaced by another tensor": "replaced by another tensor",
    "set to None": "set to None",
}
_STATES: dict[str, Callable[[Seen, Seen], bool]] = {
    "requires grad now": lambda old, new: new.requires_grad,
    "requires no grad now": lambda old, new: old.requires_grad and not new.requires_grad,
    "keeps its gradient now": lambda old, new: not old.retains_grad and new.retains_grad,
    "detached in place: now a leaf": lambda old, new: old.grad_fn is not None and new.grad_fn is None and new.is_leaf,
    "moved to other memory": lambda old, new: old.storage != new.storage,
}
_NOTHING_TO_CHECK = re.compile(
    r"(?:gradient of .* computed|read as|tested for|gradient recording|inference mode).*"
    r"|(?:SGD over|Adam over|and \d+ more|\w*Warning: ).*"
)


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.equal(one.nan_to_num(7), other.nan_to_num(7))


def grad_changed(old: Seen, new: Seen) -> bool:
    return (
        old.grad is not new.grad or old.grad_version != new.grad_version or not same(old.grad_values, new.grad_values)
    )


def changed(old: Seen, new: Seen) -> bool:
    return old.version != new.version or not same(old.values, new.values)


class Check:
    """The checks of the facts of one line against one run of it."""

    def __init__(self, run: Run) -> None:
        self.before, self.after = run.before, run.after
        self.same_values = False  # the line writes into memory what is there
        self.old = {id(seen.tensor): seen for seen in run.before.values()}
        self.new = {id(seen.tensor): seen for seen in run.after.values()}
        self.pairs = [(self.old[key], self.new[key]) for key in self.old.keys() & self.new.keys()]

    def wrong(self, fact: LineEvent) -> Iterator[str]:
        text = fact.text
        if fact.kind in ("error", "warning") or _NOTHING_TO_CHECK.fullmatch(text):
            return
        if (about_many := self._of_many(fact)) is not None:
            yield from about_many
        elif match := _WRITE.fullmatch(text):
            yield from self._write(fact.name, match)
        elif match := _SHARED.fullmatch(text):
            yield from self._shared(fact.name, match)
        elif all(part in _STATES or part.startswith("its grad_fn is now") for part in text.split(", then ")):
            yield from self._states(fact.name, text.split(", then "))
        elif text in ("new leaf, requires grad", "new parameter, requires grad", "new parameter, frozen"):
            yield from self._new_leaf(fact.name, text)
        elif match := _ORIGIN.fullmatch(text):
            yield from self._origin(fact.name, match)
        elif not re.fullmatch(r"(\.grad of )?\d+ tensors: .*", text):
            yield "not understood"
        for more in fact.more:
            yield from self._more(more)

    def _of_many(self, fact: LineEvent) -> Iterable[str] | None:
        """Checks a fact about gradients or several tensors; None if it is about something else."""
        text = fact.text
        if counted := re.fullmatch(r"(\d+) parameters?(?: and \d+ other tensors?)? changed in place", text):
            return self._counted(int(counted[1]), parameters=True)
        if counted := re.fullmatch(r"(\d+) (?:tensors|gradients) changed in place", text):
            number = len({id(new.grad) for old, new in self.pairs if grad_changed(old, new)})
            return [f"{number} gradients changed"] if "gradients" in text and number < int(counted[1]) else []
        if text.startswith(("no .grad changed", "gradient of ")):
            return ["a gradient changed" for old, new in self.pairs if grad_changed(old, new)]
        if text.startswith(".grad of "):
            return self._gradient_counts(text)
        if fact.name.endswith(".grad"):
            return self._gradient(fact)
        return None

    # --- gradients

    def _gradient_counts(self, text: str) -> Iterator[str]:
        kinds = [_kind(old, new) for old, new in self.pairs if grad_changed(old, new)]
        for number, kind in re.findall(r"\.grad of (\d+) tensors?:? ([a-z ]+?)(?=,|:|$)", text):
            unnamed = text.count(" (of line ")  # leaves that the snapshots do not find
            if not kinds.count(kind) <= int(number) <= kinds.count(kind) + unnamed:
                yield f"{kinds.count(kind)} {kind}"
        for name in (
            text.partition(": ")[2].split(", ") if re.search(r"[a-z]: ", text) and "tensors: set" not in text else []
        ):
            seen = self.before.get(name)
            if seen is not None and id(seen.tensor) in self.new and not grad_changed(seen, self.new[id(seen.tensor)]):
                yield f".grad of {name} did not change"

    def _gradient(self, fact: LineEvent) -> Iterator[str]:
        seen = self.before.get(fact.name.removesuffix(".grad")) or self.after.get(fact.name.removesuffix(".grad"))
        if seen is None:
            return
        old, new = self.old.get(id(seen.tensor)), self.new.get(id(seen.tensor))
        if old is None or new is None or not (old.is_leaf or old.retains_grad):
            return
        text = fact.text
        if text.startswith("None -> ") and not (old.grad is None and new.grad is not None):
            yield "was not set"
        elif text == "set to None" and new.grad is not None:
            yield "is not None"
        elif text.startswith("set to ") and text != "set to None" and new.grad is None:
            yield "is None"
        elif " -> None" in text and new.grad is not None:
            yield "is not None"
        elif "added to" in text and not (old.grad is new.grad and old.grad_version < new.grad_version):
            yield "was not added to"
        elif "replaced" in text and (old.grad is new.grad or old.grad is None):
            yield "was not replaced"
        elif re.fullmatch(r"\[.*\] -> \[.*\]", text) and same(old.grad_values, new.grad_values):
            yield "did not change"
        elif (match := re.search(r", v(\d+) -> v(\d+)", text)) and (old.grad_version, new.grad_version) != (
            int(match[1]),
            int(match[2]),
        ):
            yield f"v{old.grad_version} -> v{new.grad_version}"

    # --- changes

    def _counted(self, number: int, parameters: bool) -> Iterator[str]:
        moved = {
            new.storage
            for old, new in self.pairs
            if isinstance(new.tensor, torch.nn.Parameter) == parameters and changed(old, new)
        }
        if len(moved) != number:
            yield f"{len(moved)} parameters changed"

    def _find(self, name: str) -> tuple[Seen, Seen] | None:
        """The same tensor before and after the line, by a name that it had before."""
        seen = self.before.get(name)
        new = None if seen is None else self.new.get(id(seen.tensor))
        return None if seen is None or new is None else (seen, new)

    def _write(self, name: str, match: re.Match[str]) -> Iterator[str]:
        found = self._find(name)
        if found is None or name.endswith(".grad"):
            return
        old, new = found
        self.same_values = same(old.values, new.values)
        if (old.version, new.version) != (int(match[1]), int(match[2])):
            yield f"v{old.version} -> v{new.version}"
        if match[3] and (new.grad_fn is None or match[3] not in new.grad_fn.name()):
            yield f"its grad_fn is {new.grad_fn}"

    def _shared(self, name: str, match: re.Match[str]) -> Iterator[str]:
        found = self._find(name)
        if found is not None:
            yield from self._changes(*found, stays=bool(match[1]))

    def _changes(self, old: Seen, new: Seen, stays: bool) -> Iterator[str]:
        if same(old.values, new.values) and old.version == new.version and not self.same_values:
            yield "it did not change"
        if stays != (old.version == new.version):
            yield f"v{old.version} -> v{new.version}"

    def _more(self, text: str) -> Iterator[str]:
        match = re.fullmatch(r"(\S+) (changes too|shares its memory)(, its version stays)?", text)
        found = match and self._find(match[1])
        if match and found and match[2] == "changes too":
            yield from (f"{text}: {why}" for why in self._changes(*found, stays=bool(match[3])))
        elif match and found and bool(match[3]) != (found[0].version == found[1].version):
            yield f"{text}: v{found[0].version} -> v{found[1].version}"

    def _states(self, name: str, parts: list[str]) -> Iterator[str]:
        found = self._find(name)
        if found is None or len(parts) > 1:
            return
        if parts[0] in _STATES and not _STATES[parts[0]](*found):
            yield "no such change"

    # --- new tensors

    def _new_leaf(self, name: str, text: str) -> Iterator[str]:
        seen = self.after.get(name)
        if seen is None:
            return
        if not seen.is_leaf or seen.requires_grad == text.endswith("frozen"):
            yield f"leaf {seen.is_leaf}, requires grad {seen.requires_grad}"
        if id(seen.tensor) in self.old:
            yield "not new"

    def _origin(self, name: str, match: re.Match[str]) -> Iterator[str]:
        seen = self.after.get(name)
        if seen is None or not _PATH.match(name):
            return
        last = match["last"] or (match["nodes"] or "").rpartition(", ")[2]
        real = "" if seen.grad_fn is None else seen.grad_fn.name().rpartition("::")[2]
        if match["ending"] and "requires no grad" in match["ending"] + " " and seen.requires_grad:
            yield "it requires grad"
        if match["ending"] and "detached" in match["ending"] and seen.requires_grad:
            yield "it requires grad"
        if last != real:
            yield f"its grad_fn is {real}"
        if not match["ending"] and not last and seen.requires_grad and match["kind"] in ("from ", "new"):
            yield "it requires grad"
        sources = [self.before[each] for each in _names(match["sources"]) if each in self.before]
        if match["kind"] in ("view of ", "same memory as "):
            others = [self.before.get(each) or self.after.get(each) for each in _names(match["sources"])]
            if any(other is not None and other.storage != seen.storage for other in others):
                yield "other memory"
            if (match["kind"] == "view of ") != (seen.base is not None):
                yield f"its base is {seen.base is not None}"
        elif match["kind"] in ("new", "a deep copy of "):
            if any(old.storage == seen.storage for old in self.old.values()):
                yield "its memory is not new"
        if last and match["kind"] == "from " and " (of line " not in match["sources"]:
            yield from (f"{each} is not reached" for each in self._unreached(seen, sources))
            constants = [self.before[each] for each in _names(match["constants"] or "") if each in self.before]
            constants = [
                seen for seen in constants if seen.requires_grad and not (seen.is_leaf and seen.base is not None)
            ]
            if len(self._unreached(seen, constants, sources)) < len(constants):
                yield "a constant is reached"

    def _unreached(self, result: Seen, sources: Iterable[Seen], beyond: Iterable[Seen] = ()) -> list[Seen]:
        """The sources that the graph does not lead to, except through the tensors `beyond`."""
        nodes, leaves = _graph(result.grad_fn, {seen.grad_fn for seen in beyond})
        sources = [s for s in sources if not (s.is_leaf and s.base is not None)]  # its base may be the leaf instead
        return [s for s in sources if s.grad_fn not in nodes and id(s.tensor) not in leaves]

    # --- nothing is left out

    def left_out(self, facts: Iterable[LineEvent], end: Snapshot) -> Iterator[str]:
        """Yields the changes that no fact of the line mentions, of tensors that still have a name at the end."""
        lasting = {n for n, s in self.after.items() if n in end and end[n].tensor is s.tensor}
        facts = list(facts)
        texts = " ".join(f"{fact.name} {fact.text} {' '.join(fact.more)}" for fact in facts)
        counts = re.search(r"\d+ (tensors|parameters|gradients|more)|more in the same memory", texts)
        words = set(re.findall(r"[a-z]\w*(?:\[\d+\]|\.[a-z]\w*)*", texts))
        words |= {word.removesuffix(".data") for word in words}
        for old, new in self.pairs:
            both = (*self.before.items(), *self.after.items())
            names = {n for n, s in both if s.tensor is new.tensor}
            names |= {f"{n}.grad" for n, s in both if s.grad is new.tensor}
            if counts or words & names or not names & lasting:
                continue
            if old.version != new.version and same(old.values, new.values):
                continue  # a counter may be shared where memory is not
            if old.version != new.version or (old.requires_grad != new.requires_grad and old.base is None):
                yield f"{sorted(names)} changed"
            elif not same(old.values, new.values) and not any("running_" in name for name in names):
                yield f"the values of {sorted(names)} changed"
            elif old.grad is not new.grad and not words & {f"{name}.grad" for name in names}:
                yield f"the gradient of {sorted(names)} changed"
        for name, seen in self.after.items():
            if id(seen.tensor) not in self.old and not counts and name in lasting and name not in words:
                aliases = {n for n, s in self.after.items() if s.tensor is seen.tensor}
                if not words & aliases and not any(seen.tensor is old.grad for old in self.old.values()):
                    yield f"{name} is new"


def _kind(old: Seen, new: Seen) -> str:
    if old.grad is None:
        return "set"
    if new.grad is None:
        return "set to None"
    return "added to" if old.grad is new.grad else "replaced by another tensor"


def _names(text: str) -> list[str]:
    """The names in `a, b and 2 more`."""
    return [part for part in re.split(r", | and ", text) if _PATH.match(part)]


def _graph(node: object, ends: Container[object] = ()) -> tuple[set[object], set[int]]:
    nodes: set[object] = set()
    leaves: set[int] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each is None or each in nodes or each in ends:
            continue
        nodes.add(each)
        if hasattr(each, "variable"):
            leaves.add(id(each.variable))
        waiting += [next_node for next_node, _ in each.next_functions]  # type: ignore[attr-defined]
    return nodes, leaves


def wrong_rows(rows: Iterable[TensorRow], end: Snapshot, moved: bool) -> Iterator[str]:
    """Yields what is wrong in a tensor table, of the rows that show a single tensor.

    `moved`: the program gives a tensor other memory, `x.data = ...`. Whether later views of it are in the old or in the
    new memory is not checked.
    """
    for row in rows:
        names = row.name.split(", ")
        seen = [end[name] for name in names if name in end]
        if not seen:
            continue
        one = seen[0]
        if any(other.tensor is not one.tensor for other in seen):
            yield f"{row.name}: several tensors"
        grad_fn = "" if one.grad_fn is None else one.grad_fn.name()
        shares = {
            name for name, other in end.items() if other.storage == one.storage and other.tensor is not one.tensor
        }
        cells: dict[str, tuple[object, object]] = {
            "requires_grad": (row.requires_grad, "yes" if one.requires_grad else "no"),
            "leaf": (row.leaf, "yes" if one.is_leaf else "no"),
            "version": (row.version, str(one.version)),
            "grad_fn": (row.grad_fn.rpartition("::")[2], grad_fn.rpartition("::")[2]),
            "grad": (row.grad == "not a leaf", not one.is_leaf and not one.retains_grad),
            "no grad": (row.grad == "None", one.grad is None and (one.is_leaf or one.retains_grad)),
            "shares": (bool(row.shares), bool(shares)),
            "shared": (set(_names(row.shares)) - shares, set()),
        }
        if moved:
            del cells["shares"], cells["shared"]
        yield from (
            f"{row.name}: {cell} {shown}, really {real}" for cell, (shown, real) in cells.items() if shown != real
        )
    marks = {name: row.storage for row in rows for name in row.name.split(", ") if name in end}
    for name, mark in marks.items():
        for other, its in marks.items():
            if not moved and (mark == its) != (end[name].storage == end[other].storage):
                yield f"{name} {mark}, {other} {its}"


def wrong_counts(counts: dict[int, str], runs: dict[int, list[Run]]) -> Iterator[str]:
    """Yields the lines whose number of runs is wrong: `x3`, or `x2+` for two or more."""
    for line, real in runs.items():
        shown = counts.get(line)
        if shown is not None:
            number = int(shown.strip("x+") or 1)
            if number > len(real) or (number < len(real) and not shown.endswith("+")):
                yield f"line {line}: {shown}, really {len(real)}"
