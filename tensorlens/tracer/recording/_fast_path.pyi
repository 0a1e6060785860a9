from typing import Any

SOURCE: str

class FastPath:
    def __init__(self, **tables: object) -> None: ...
    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any: ...
