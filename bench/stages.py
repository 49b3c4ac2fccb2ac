"""Where the time of a run goes: processor seconds of each stage, without those inside it.

Stages are functions of the package, wrapped while the profile runs. Seconds are of the thread
that runs the stage, so that waiting for the other threads is not counted.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import GeneratorType
from typing import Any
from unittest.mock import patch

STAGES = {
    "draw: AES key stream": "voile.noise.keyed:Stream.words",
    "draw: binary digits of gaps": "voile.noise.gaps:read_digit",
    "draw: gaps to places": "voile.noise.gaps:walk",
    "draw: the rest": "voile.mechanisms:AlphaBeta.noise_rows",
    "merge": "voile.mechanisms:AlphaBeta.view",
    "cut into row groups": "voile.kinds.parquet:parts_of_groups",
    "decode: keys to codes": "voile.schema:TupleIndex.decode_parts",
    "decode: codes to columns": "voile.kinds.parquet:Decoder.__call__",
    "Parquet write": "pyarrow.parquet:ParquetWriter.write_table",
    "Parquet close": "pyarrow.parquet:ParquetWriter.close",
    "hash": "voile.kinds.manifest:sha256",
}
"""Stage to module:function."""


class Stages:
    """Seconds by stage, added up over threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: defaultdict[str, float] = defaultdict(float)
        self._local = threading.local()

    def seconds(self) -> dict[str, float]:
        """The seconds of each stage that was seen."""
        return {name: self._total[name] for name in STAGES if name in self._total}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time in here for `name`, and not for the stage around it."""
        around = getattr(self._local, "inside", 0.0)
        self._local.inside = 0.0
        start = time.thread_time()
        try:
            yield
        finally:
            took = time.thread_time() - start
            with self._lock:
                self._total[name] += took - self._local.inside
            self._local.inside = around + took

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted for the stage."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                result = function(*args, **kwargs)
            return self._each(name, result) if isinstance(result, GeneratorType) else result

        return timed

    def _each(self, name: str, items: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while True:
            with self.stage(name):
                item = next(items, end)
            if item is end:
                return
            yield item


@contextmanager
def profiled() -> Iterator[Stages]:
    """Count the time of all stages inside."""
    stages = Stages()
    with ExitStack() as patches:
        for name, place in STAGES.items():
            owner, last = located(place)
            timed = stages.wrapped(name, getattr(owner, last))
            patches.enter_context(patch.object(owner, last, timed))
        yield stages


def located(place: str) -> tuple[Any, str]:
    """The module or class that a module:function stands in, and the name of the function."""
    module, _, path = place.partition(":")
    *owners, last = path.split(".")
    owner: Any = importlib.import_module(module)
    for step in owners:
        owner = getattr(owner, step)
    return owner, last
