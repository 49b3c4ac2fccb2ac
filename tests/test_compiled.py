"""Kernels are compiled when they are first called, call each other, and are as the plain loops."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tests.support.paths import ROOT
from voile.arrays import Floats
from voile.compiled import compiled


@compiled
def square(value: float) -> float:
    return value * value


@compiled
def sum_of_squares(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += square(value)
    return total


@compiled
def factorial(value: int) -> int:
    return 1 if value <= 1 else value * factorial(value - 1)


def test_a_kernel_may_call_another_and_itself() -> None:
    values = np.arange(5.0)
    assert sum_of_squares(values) == sum(value**2 for value in values)
    assert sum_of_squares(values.astype(np.float32)) == 30.0
    assert factorial(10) == 3628800


def test_numba_is_loaded_with_the_first_call() -> None:
    code = (
        "import sys; from voile.schema import TupleIndex; import voile.recoding, voile.reconstruct;"
        "assert 'numba' not in sys.modules;"
        "import tests.test_compiled as kernels; assert 'numba' not in sys.modules;"
        "assert kernels.factorial(3) == 6; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
