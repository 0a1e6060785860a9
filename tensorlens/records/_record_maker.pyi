from collections.abc import Callable
from typing import Any

SOURCE: str

def maker(kind: Any, names: tuple[str, ...]) -> Callable[..., Any]: ...
