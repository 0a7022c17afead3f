"""What functions of a configuration gave last, kept for the next configuration that is the same in all that they read.

Cells of a sweep that differ only in their failures, say, have the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from operator import eq
from typing import Any, Generic, NamedTuple, TypeVar

Result = TypeVar("Result")
Config = Mapping[str, Any]
_ABSENT = object()


class _Noting(Mapping[str, Any]):
    """A configuration that notes which values are read."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = self.read[name] = self._config[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)


class _Last(NamedTuple, Generic[Result]):
    """What a function gave last: of which objects, and of which values of a configuration."""

    objects: tuple[Any, ...]
    read: dict[str, Any]
    result: Result


class Remembered:
    """The last results of functions, which depend on nothing but their arguments and change none of them."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._last: dict[Callable[..., Any], _Last[Any]] = {}

    def of(self, function: Callable[..., Result], config: Config, *objects: Any) -> Result:
        """Return ``function(config, *objects)``; the last result if these are the same objects, and of the same value
        all that it read of the configuration."""
        last = self._last.pop(function, None)  # so that it is gone before another takes memory
        if last is None or not _is_same(last, config, objects):
            del last
            noting = _Noting(config)
            result = function(noting, *objects)
            last = _Last(objects, noting.read, result)
        self._last[function] = last
        found: Result = last.result
        return found


def _is_same(last: _Last[Any], config: Config, objects: tuple[Any, ...]) -> bool:
    if any(one is not other for one, other in zip(last.objects, objects, strict=True)):
        return False
    return all(map(eq, map(config.get, last.read, repeat(_ABSENT)), last.read.values()))
