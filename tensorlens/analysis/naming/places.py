"""Places in the program: the line and function of a site, and the sites that it was called from."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.records.model import Site, Trace

Scope = tuple[str, str]  # file, function
Place = tuple[str, str, int]  # file, function, line
_INNER = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"}
_IN_INNER = tuple(f".{inner}" for inner in _INNER)


def place_of(site: Site) -> Place:
    """Returns the line of a site within its function; a comprehension or lambda counts as part of the function around
    it."""
    function = site.function
    while function.endswith(_IN_INNER):
        function = function.rpartition(".")[0].removesuffix(".<locals>")
    return site.span.file, "<module>" if function in _INNER else function, site.span.line


def callers(trace: Trace, site: int) -> Iterator[int]:
    """Yields the sites that a site was called from, the innermost first."""
    seen = {site}
    caller = trace.sites[site].caller
    while caller is not None and caller not in seen:
        seen.add(caller)
        yield caller
        caller = trace.sites[caller].caller
