"""A refinement in one file beside its release, bound to it and to its own content.

It names the release by the SHA-256 of its manifest: after `--overwrite` the file that is left
refines another release, and a new one is fitted. It has a digest of its own arrays: a file that was
changed is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from voile.errors import ReleaseError
from voile.files import write_whole
from voile.kinds.views.refinement.em import LARGEST
from voile.kinds.views.refinement.fit import Refinement
from voile.kinds.views.refinement.mixture import ErrorModel, Mixture

FORMAT = 2
"""1 had no digest of the arrays; it is fitted anew."""
UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, TypeError, RuntimeError, MemoryError,
    SyntaxError, struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
"""What NumPy and zipfile raise on bytes that are no such file."""
LARGEST_FILE = 2**28
"""Bytes of the arrays, unpacked: a little more than the largest fits have."""
HINT = "delete the file and refine the release again"

Arrays = dict[str, npt.NDArray[Any]]


def save(refinement: Refinement, path: Path, *, of: str) -> None:
    """Write beside, sync, rename; `of` is the SHA-256 of the manifest of the refined release."""
    error = refinement.error
    about = {
        "format": FORMAT,
        "of": of,
        "report": refinement.report,
        "error": [error.follows, error.rows, error.whole, error.unsure],
    }
    arrays: Arrays = {"weights": error.weights}
    for name, mixture in named(refinement):
        arrays[f"{name}_rows"] = np.float64(mixture.rows)  # type: ignore[assignment]
        arrays[f"{name}_mix"] = mixture.mix
        for j, table in enumerate(mixture.tables):
            arrays[f"{name}_{j}"] = table
    arrays["about"] = np.array(json.dumps(about | {"sha256": digest_of(about, arrays)}))
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_whole(path, content.getvalue())


def load(path: Path, *, of: str, sizes: Sequence[int] | None = None) -> Refinement | None:
    """What `save` wrote for this release, or None where it wrote nothing, or for another release.

    Nothing in it is executed. `sizes` are those of the release's attributes, which the tables must
    have.
    """
    try:
        with path.open("rb") as file, np.load(checked_size(file), allow_pickle=False) as stored:
            if sum(each.file_size for each in stored.zip.infolist()) > LARGEST_FILE:
                raise ValueError("it is too large")
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        raise broken(path, type(error).__name__) from None
    try:
        about = json.loads(str(arrays.pop("about")))
        if about["format"] == 1 or about["of"] != of:
            return None
        found = read(about, arrays)
        check_sizes(found.mixture, sizes)
        return found
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise broken(path, str(error)) from None


def checked_size(file: IO[bytes]) -> IO[bytes]:
    """Refuse what would fill the memory, before it is read."""
    if os.fstat(file.fileno()).st_size > LARGEST_FILE:
        raise ValueError("it is too large")
    return file


def read(about: dict[str, Any], arrays: Arrays) -> Refinement:
    """The refinement that a file's arrays hold; ValueError where they hold none."""
    if about["format"] != FORMAT:
        raise ValueError(f"its format is {about['format']!r}, not {FORMAT}")
    if about.pop("sha256") != digest_of(about, arrays):
        raise ValueError("it was changed since it was written")
    follows, rows, whole, unsure = (float(number) for number in about["error"])
    weights = numbers(arrays["weights"], (3,))
    fits = [mixture(arrays, name) for name in ("full", "half_a", "half_b")]
    if len({tuple(table.shape[1] for table in fit.tables) for fit in fits}) != 1:
        raise ValueError("its fits are of different domains")
    error = ErrorModel(weights, follows, rows, whole, unsure)
    if not np.isfinite([follows, rows, whole, unsure]).all():
        raise ValueError("its error is not a number")
    return Refinement(fits[0], error, (fits[1], fits[2]), dict(about["report"]))


def digest_of(about: dict[str, Any], arrays: Arrays) -> str:
    """SHA-256 over what is said and every array, by name, with its type and shape."""
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"\n{name} {array.dtype.str} {np.shape(arrays[name])}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def check_sizes(fit: Mixture, sizes: Sequence[int] | None) -> None:
    """Refuse a model of another domain."""
    widths = [table.shape[1] for table in fit.tables]
    if sizes is not None and widths != [size if size <= LARGEST else 0 for size in sizes]:
        raise ValueError("its tables are of another domain")


def mixture(arrays: Arrays, name: str) -> Mixture:
    """One fit, checked: shapes that belong together, shares that sum to 1."""
    mix = numbers(arrays[f"{name}_mix"], (None,))
    tables: list[npt.NDArray[np.float64]] = []
    while f"{name}_{len(tables)}" in arrays:
        tables.append(numbers(arrays[f"{name}_{len(tables)}"], (len(mix), None)))
    sums = [mix.sum(keepdims=True), *(t.sum(axis=1) for t in tables if t.shape[1])]
    if not tables or not np.allclose(np.concatenate(sums), 1):
        raise ValueError("its shares do not sum to 1")
    return Mixture(float(numbers(arrays[f"{name}_rows"], ())), mix, tuple(tables))


def numbers(array: npt.NDArray[Any], shape: tuple[int | None, ...]) -> npt.NDArray[np.float64]:
    """An array of finite float64 of at least 0 in the shape wanted; None is any length."""
    fits = array.ndim == len(shape) and all(
        wanted in (None, given) for wanted, given in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.float64 or not fits:
        raise ValueError(f"an array is {array.dtype}{array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError("an array has entries that are no shares or counts")
    return array


def named(refinement: Refinement) -> list[tuple[str, Mixture]]:
    """The fits of a refinement, by their names in the file."""
    return list(
        zip(("full", "half_a", "half_b"), (refinement.mixture, *refinement.halves), strict=True)
    )


def broken(path: Path, reason: str) -> ReleaseError:
    """The error of a refinement file that cannot be read."""
    return ReleaseError(f"{path.name} is not a refinement that can be read: {reason}", hint=HINT)
