"""The compiled loops of the certified frontier."""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats
from voile.compiled import compiled
from voile.recoding.units import Codes, Counts

LN2 = float(np.log(2.0))


@compiled
def mass(slopes: Floats, overall: Floats, beta: float, first: float) -> tuple[float, float]:
    """Σp and its derivative by ln e₀, where e_s = e₀·exp(−β·slope) and p_s = q_s·e_s/(2 − e_s)."""
    total, derivative = 0.0, 0.0
    for s in range(overall.size):
        e = first * np.exp(-beta * slopes[s])
        total += overall[s] * e / (2.0 - e)
        derivative += 2.0 * overall[s] * e / (2.0 - e) ** 2
    return total, derivative


@compiled
def normalised(slopes: Floats, overall: Floats, beta: float, low: float) -> float:
    """The e₀ with which the masses sum to 1; `low` is the mass of the values of slope 0.

    Newton's method on the mass p₀ of those values together, kept between `low` and 1.
    """
    below, above, share = low, 1.0, 0.5 * (low + 1.0)
    for _ in range(100):
        first = 2.0 * share / (share + low)
        total, derivative = mass(slopes, overall, beta, first)
        own = 2.0 * low * first / (2.0 - first) ** 2
        if total > 1.0:
            above = share
        else:
            below = share
        moved = share - (total - 1.0) * own / derivative
        if not below <= moved <= above:
            moved = 0.5 * (below + above)
        if abs(moved - share) <= 1e-13:
            break
        share = moved
    return 2.0 * share / (share + low)


@compiled
def least_in_ball(
    slopes: Floats, overall: Floats, radius: float, point: Floats
) -> tuple[float, float]:
    """Into `point`: a p with JS(Q, p) ≤ radius and Σ slope·p least. The least slope must be 0.

    Returns a certified lower bound of that least sum, and the price λ ≥ 0 of the radius: at any
    other radius r, bound + λ·(radius − r) is a lower bound. They come from the dual
    (λ/2) Σ q_s ln(2 − e_s) − λ·radius − μ with ln e_s = −2(slope + μ)/λ, which is below the least
    sum for every λ and μ, converged or not.
    """
    low, mean = 0.0, 0.0
    for s in range(overall.size):
        low += overall[s] if slopes[s] <= 0.0 else 0.0
        mean += overall[s] * slopes[s]
    ratio = 1.0 / low
    farthest = 0.5 * low * (np.log(2.0 / (1.0 + ratio)) + ratio * np.log(2.0 * ratio / (1 + ratio)))
    if farthest + 0.5 * (1.0 - low) * LN2 <= radius or mean <= 0.0:
        for s in range(overall.size):
            point[s] = overall[s] / low if slopes[s] <= 0.0 else 0.0
        return 0.0, 0.0
    spread = 0.0
    for s in range(overall.size):
        spread += overall[s] * (slopes[s] - mean) ** 2
    beta = np.sqrt(2.0 * radius / spread)  # exact for a small radius
    under, over, best, price, distance, total = 0.0, np.inf, -np.inf, 0.0, 0.0, 1.0
    for _ in range(100):
        first = normalised(slopes, overall, beta, low)
        weight, by_slope, by_square, dual, distance, total = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for s in range(overall.size):
            log_e = np.log(first) - beta * slopes[s]
            e = np.exp(log_e)
            kept = overall[s] * np.log(2.0 - e)
            point[s] = overall[s] * e / (2.0 - e)
            own = 2.0 * point[s] / (2.0 - e)
            weight += own
            by_slope += own * slopes[s]
            by_square += own * slopes[s] ** 2
            dual += 0.5 * kept
            distance += 0.5 * (kept + point[s] * log_e)
            total += point[s]
        bound = 2.0 / beta * (dual - radius) + np.log(first) / beta
        if bound > best:
            best, price = bound, 2.0 / beta
        if distance <= radius:
            under = beta
        else:
            over = beta
        if abs(distance - radius) <= 1e-8 * radius:
            break
        # √JS is nearly straight in β: its slope is ¼·β·(weighted variance of slopes)/√JS.
        variance = by_square - by_slope**2 / weight
        root = np.sqrt(distance)
        # Slopes that tie up to rounding have none: the bound is as good as it gets.
        moved = (
            np.inf
            if beta * variance <= 0.0
            else (beta - (root - np.sqrt(radius)) * 4.0 * root / (beta * variance))
        )
        if not under < moved < over:
            moved = 2.0 * beta if over == np.inf else 0.5 * (under + over)
        beta = moved
    # JS is convex and 0 at Q: so much of the way from there is in the ball.
    way = min(1.0, radius / distance)
    for s in range(overall.size):
        point[s] = overall[s] + way * (point[s] / total - overall[s])
    return best, price


@compiled
def least_in_balls(
    slopes: Floats, overall: Floats, radius: float, points: Floats
) -> tuple[float, float]:
    """The same for every row of slopes; the bounds and the prices are summed."""
    bound, price = 0.0, 0.0
    for row in range(slopes.shape[0]):
        least = slopes[row].min()
        own, its_price = least_in_ball(slopes[row] - least, overall, radius, points[row])
        bound += own + least
        price += its_price
    return bound, price


@compiled
def sums_by_part(
    starts: Counts, members: Codes, part: Codes, values: Floats, found: Floats
) -> None:
    """Into found[part, y]: the sum of the values of population y's atoms of that part."""
    for y in range(starts.size - 1):
        for place in range(starts[y], starts[y + 1]):
            atom = members[place]
            into = found[part[atom], y]
            for s in range(into.size):
                into[s] += values[atom, s]


@compiled
def weighted_products(columns: Floats, weights: Floats) -> Floats:
    """Σ_z weight_z · column_i(z) · column_j(z) for all columns i and j; `columns` is (z, columns).

    On one thread: the portfolio has the others, and a linear algebra library would take them all.
    """
    found = np.zeros((columns.shape[1], columns.shape[1]))
    for z in range(columns.shape[0]):
        row = columns[z]
        for i in range(row.size):
            scaled = weights[z] * row[i]
            if scaled != 0.0:
                for j in range(i + 1):
                    found[i, j] += scaled * row[j]
    for i in range(columns.shape[1]):
        for j in range(i):
            found[j, i] = found[i, j]
    return found


@compiled
def quadratic_step(curvature: Floats, slope: Floats, weights: Floats, sweeps: int) -> Floats:
    """Weights (parts, corners) that minimise a quadratic model; the sum of each part is kept.

    Weight is moved between the two corners of a part that gain most, part by part.
    """
    parts, corners = weights.shape
    found, now = weights.copy(), slope.copy()
    for _ in range(sweeps):
        gained = 0.0
        for part in range(parts):
            start = part * corners
            to = start + np.argmin(now[start : start + corners])
            best, source, amount = 0.0, -1, 0.0
            for k in range(start, start + corners):
                held, fall = found[part, k - start], now[k] - now[to]
                if held <= 0.0 or fall <= 0.0:
                    continue
                bend = curvature[to, to] + curvature[k, k] - 2.0 * curvature[to, k]
                move = held if bend * held <= fall else fall / bend
                gain = move * fall - 0.5 * bend * move * move
                if gain > best:
                    best, source, amount = gain, k, move
            if source < 0:
                continue
            found[part, to - start] += amount
            found[part, source - start] -= amount
            gained += best
            for k in range(now.size):
                now[k] += amount * (curvature[k, to] - curvature[k, source])
        if gained <= 1e-15:
            break
    return found
