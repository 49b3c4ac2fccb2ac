"""The compiled loops of EM. See em.py for what they compute and why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints, Words
from voile.compiled import compiled

Cells = npt.NDArray[np.int32]

TINY = 2.0**-600
"""Below this a product may have lost digits, or all of them, to the end of the exponents."""
STEP = 2.0**300
"""What such a product is scaled by; exact, a power of two."""
NEGLIGIBLE = 1e-7
"""A row that is signal with less than this chance is noise: millions of them are not one record.
Half of the rows of a view are such."""


@compiled
def split_tiny(
    cells: Cells, tables: Floats, mass: Floats, noise: float, i: int, part: Floats
) -> tuple[float, float, float]:
    """As `split`, scaled up whenever the products become small: for domains of very many tuples."""
    part[:] = mass
    scale = 0.0
    for g in range(cells.shape[0]):
        part *= tables[cells[g, i]]
        largest = part.max()
        while 0.0 < largest < 1.0 / STEP:
            part *= STEP
            largest *= STEP
            noise *= STEP
            scale += np.log(STEP)
    return part.sum(), noise, scale


@compiled
def split(
    cells: Cells, tables: Floats, mass: Floats, noise: float, i: int, part: Floats
) -> tuple[float, float, float]:
    """λ of row i in parts: each component's into `part`; returns their sum, the noise, the scale.

    The third number is the logarithm of what all parts and the noise were multiplied by, which is
    0 unless λ is tiny.
    """
    for k in range(mass.size):
        part[k] = mass[k]
    for g in range(cells.shape[0]):
        row = tables[cells[g, i]]
        for k in range(mass.size):
            part[k] *= row[k]
    signal = 0.0
    for k in range(mass.size):
        signal += part[k]
    if signal + noise < TINY:
        return split_tiny(cells, tables, mass, noise, i, part)
    return signal, noise, 0.0


@compiled
def log_density(signal: float, noise: float, scale: float, unscaled: float) -> float:
    """The logarithm of a row's density, from its scaled parts."""
    if noise == np.inf:
        return float(np.log(unscaled))  # the signal is nothing beside the noise
    return float(np.log(signal + noise) - scale)


@compiled
def expect(
    cells: Cells, tables: Floats, mass: Floats, noise: float, first: int, last: int, counts: Floats
) -> float:
    """Add each row's chance of coming from each component to the cells that it lies in.

    `cells[g, i]` is row i's place in the stacked tables of its g-th group of attributes, `mass[k]`
    the expected number of rows of component k, `noise` that of noise copies of each tuple. Returns
    the sum of log λ over the rows [first, last).
    """
    part = np.empty(mass.size)
    likelihood, product = 0.0, 1.0
    for i in range(first, last):
        signal, floor, scale = split(cells, tables, mass, noise, i, part)
        if scale == 0.0 and signal + floor < 1.0 / TINY:
            product *= signal + floor  # a logarithm costs more than all else of a row
            if product < 1.0 / STEP or product > STEP:
                likelihood += np.log(product)
                product = 1.0
        else:
            likelihood += log_density(signal, floor, scale, noise)
        if signal > NEGLIGIBLE * floor:
            share = 1.0 / (signal + floor)
            for k in range(mass.size):
                part[k] *= share
            for g in range(cells.shape[0]):
                into = counts[cells[g, i]]
                for k in range(mass.size):
                    into[k] += part[k]
    return float(likelihood + np.log(product))


@compiled
def log_densities(
    cells: Cells, tables: Floats, mass: Floats, noise: float, first: int, last: int, out: Floats
) -> None:
    """log λ of each row in [first, last)."""
    part = np.empty(mass.size)
    for i in range(first, last):
        signal, floor, scale = split(cells, tables, mass, noise, i, part)
        out[i] = log_density(signal, floor, scale, noise)


@compiled
def tally(cells: Cells, words: Words, first: int, last: int, counts: Ints) -> None:
    """Count the rows in [first, last) that each of 64 queries selects.

    Bit q of `words[c]` is whether query q selects the cell c of a group's table; a row is selected
    where all of its cells are.
    """
    for i in range(first, last):
        selected = words[cells[0, i]]
        for g in range(1, cells.shape[0]):
            selected &= words[cells[g, i]]
        if selected:
            for q in range(counts.size):
                counts[q] += np.int64((selected >> np.uint64(q)) & np.uint64(1))
