"""Our modules within a job, for servers that take no artifacts: Sail in a process of its own.

Their sources are public, and go along with every job as one ZIP file. The first job of a process
there imports them from memory; nothing is written to its disk. A process has one Voile: one of
another version that is there already is an error, and never used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

Batches = Iterator[pa.RecordBatch]


def bringing(packed: bytes) -> Callable[[], None]:
    """A function that makes the modules of a ZIP file importable, wherever it is called."""
    digest = hashlib.sha256(packed).hexdigest()

    def bring() -> None:
        # It stands alone: Spark sends it as code, since nothing of ours is there before it.
        import hashlib  # noqa: PLC0415
        import importlib.abc  # noqa: PLC0415
        import importlib.util  # noqa: PLC0415
        import io  # noqa: PLC0415
        import sys  # noqa: PLC0415
        import zipfile  # noqa: PLC0415

        class Modules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
            """Finds and loads our modules by their sources."""

            def __init__(self) -> None:
                self.carries = digest
                with zipfile.ZipFile(io.BytesIO(packed)) as files:
                    self.sources = {name: files.read(name).decode() for name in files.namelist()}

            def place(self, name: str) -> str:
                """The file of a module; empty for what is not ours."""
                path = name.replace(".", "/")
                both = (f"{path}.py", f"{path}/__init__.py")
                return next((one for one in both if one in self.sources), "")

            def find_spec(
                self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
            ) -> ModuleSpec | None:
                """Of our modules only."""
                del path, target
                place = self.place(name)
                return importlib.util.spec_from_loader(name, self) if place else None

            def get_source(self, name: str) -> str:
                """As it was packed."""
                return self.sources[self.place(name)]

            def get_code(self, name: str) -> CodeType:
                """With the name of its file, for traces of errors."""
                return self.source_to_code(self.get_source(name), self.place(name))

            def is_package(self, name: str) -> bool:
                """Whether it is a folder."""
                return self.place(name).endswith("__init__.py")

            def exec_module(self, module: ModuleType) -> None:
                """Marked, so that it is known whose it is."""
                module.__carried__ = digest  # type: ignore[attr-defined]
                super().exec_module(module)

        def installed() -> str:
            """The digest of the Voile that this process has of its own."""
            name = "voile.engines.spark.session"
            try:
                return hashlib.sha256(importlib.import_module(name).packed_modules()).hexdigest()
            except (ImportError, AttributeError, OSError):
                return "another"

        loaded = sys.modules.get("voile")
        if loaded is None:
            if not any(getattr(finder, "carries", "") == digest for finder in sys.meta_path):
                sys.meta_path.insert(0, Modules())
            loaded = importlib.import_module("voile")
        if not hasattr(loaded, "__carried__"):
            loaded.__carried__ = installed()  # type: ignore[attr-defined]
        if loaded.__carried__ != digest:
            raise RuntimeError("another version of Voile is loaded there")

    return bring


def brought(
    job: Callable[[Batches], Batches], bring: Callable[[], None]
) -> Callable[[Batches], Batches]:
    """A job as a function that brings the modules it is made of."""
    from pyspark import cloudpickle  # noqa: PLC0415  (only where a cluster is used)

    pickled: bytes = cloudpickle.dumps(job)

    def run(batches: Batches) -> Batches:
        import pickle  # noqa: PLC0415

        bring()
        return pickle.loads(pickled)(batches)  # type: ignore[no-any-return]  # noqa: S301

    return run
