"""The compiled loops along one axis, or along a run of binary ones. All change `x` in place.

A tensor is seen as (outer, classes, inner): `inner` cells lie between neighbours along the axis.
Axes commute, so each loop takes whatever order keeps the cells in the cache.
"""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats
from voile.compiled import compiled

STRIP = 256
"""Cells that are summed side by side along an axis; their sums stay in the cache."""
BLOCK = 4096
"""Cells of a run of binary axes that are finished before the next are touched."""


@compiled
def carry_histogram(x: Floats, inner: int, masses: Floats, keep: float, share: float) -> None:
    """x_c becomes keep·x_c + share·masses_c·Σx, along the axis."""
    classes = masses.size
    width = min(inner, STRIP)
    sums = np.empty(width)
    for base in range(0, x.size, classes * inner):
        if inner == 1:
            scale_row(x[base : base + classes], masses, keep, share)
            continue
        for first in range(base, base + inner, width):
            size = min(width, base + inner - first)
            sums[:size] = 0.0
            for c in range(classes):
                strip = x[first + c * inner : first + c * inner + size]
                for i in range(size):
                    sums[i] += strip[i]
            for c in range(classes):
                strip = x[first + c * inner : first + c * inner + size]
                weight = share * masses[c]
                for i in range(size):
                    strip[i] = keep * strip[i] + weight * sums[i]


@compiled
def carry_function(x: Floats, inner: int, masses: Floats, keep: float, share: float) -> None:
    """f_c becomes keep·f_c + share·Σ masses·f, along the axis."""
    classes = masses.size
    width = min(inner, STRIP)
    sums = np.empty(width)
    for base in range(0, x.size, classes * inner):
        if inner == 1:
            shift_row(x[base : base + classes], masses, keep, share)
            continue
        for first in range(base, base + inner, width):
            size = min(width, base + inner - first)
            sums[:size] = 0.0
            for c in range(classes):
                strip = x[first + c * inner : first + c * inner + size]
                weight = share * masses[c]
                for i in range(size):
                    sums[i] += weight * strip[i]
            for c in range(classes):
                strip = x[first + c * inner : first + c * inner + size]
                for i in range(size):
                    strip[i] = keep * strip[i] + sums[i]


@compiled
def scale_row(row: Floats, masses: Floats, keep: float, share: float) -> None:
    """`carry_histogram` where the cells along the axis are neighbours."""
    total = 0.0
    for c in range(masses.size):
        total += row[c]
    total *= share
    for c in range(masses.size):
        row[c] = keep * row[c] + total * masses[c]


@compiled
def shift_row(row: Floats, masses: Floats, keep: float, share: float) -> None:
    """`carry_function` where the cells along the axis are neighbours."""
    total = 0.0
    for c in range(masses.size):
        total += masses[c] * row[c]
    total *= share
    for c in range(masses.size):
        row[c] = keep * row[c] + total


@compiled
def carry_pair(x: Floats, inner: int, m: Floats) -> None:
    """(a, b) becomes (m₀₀a + m₀₁b, m₁₀a + m₁₁b) along one binary axis."""
    m00, m01, m10, m11 = m[0, 0], m[0, 1], m[1, 0], m[1, 1]
    for start in range(0, x.size, 2 * inner):
        low, high = x[start : start + inner], x[start + inner : start + 2 * inner]
        for i in range(inner):
            a, b = low[i], high[i]
            low[i] = m00 * a + m01 * b
            high[i] = m10 * a + m11 * b


@compiled
def carry_pairs(x: Floats, inner: int, m: Floats, n: Floats) -> None:
    """Two neighbouring binary axes in one pass: `m` along the outer, `n` along the inner one."""
    m00, m01, m10, m11 = m[0, 0], m[0, 1], m[1, 0], m[1, 1]
    n00, n01, n10, n11 = n[0, 0], n[0, 1], n[1, 0], n[1, 1]
    for start in range(0, x.size, 4 * inner):
        first = x[start : start + inner]
        second = x[start + inner : start + 2 * inner]
        third = x[start + 2 * inner : start + 3 * inner]
        fourth = x[start + 3 * inner : start + 4 * inner]
        for i in range(inner):
            a, b, c, d = first[i], second[i], third[i], fourth[i]
            e, f = m00 * a + m01 * c, m00 * b + m01 * d
            g, h = m10 * a + m11 * c, m10 * b + m11 * d
            first[i] = n00 * e + n01 * f
            second[i] = n10 * e + n11 * f
            third[i] = n00 * g + n01 * h
            fourth[i] = n10 * g + n11 * h


@compiled
def carry_neighbours(x: Floats, inner: int, matrices: Floats) -> None:
    """A run of binary axes, two at a time."""
    axes = matrices.shape[0]
    j = axes
    while j >= 2:
        carry_pairs(x, inner << (axes - j), matrices[j - 2], matrices[j - 1])
        j -= 2
    if j == 1:
        carry_pair(x, inner << (axes - 1), matrices[0])


@compiled
def carry_run(x: Floats, inner: int, matrices: Floats) -> None:
    """A run of binary axes, `matrices[j]` along the j-th; `inner` cells lie within the last one.

    Blocks that fit the cache are carried along as many of the last axes as they span, and then
    all cells along the others.
    """
    axes = matrices.shape[0]
    near = 0
    while near < axes and (inner << (near + 1)) <= BLOCK:
        near += 1
    block = inner << near
    for first in range(0, x.size, block):
        carry_neighbours(x[first : first + block], inner, matrices[axes - near :])
    carry_neighbours(x, block, matrices[: axes - near])
