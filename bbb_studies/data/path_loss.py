"""Wu's second system: the power of a radio signal over a plane with buildings (W6).

Places are in metres, power in dBm, losses in dB. `Scene` holds the numbers, `field` is the map
without shadowing, `receivers` draws measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MAX_REJECTION_ROUNDS = 1000  # after which an area counts as empty


class Building(NamedTuple):
    """A rectangle with sides along the axes, and what each of its walls costs."""

    left: float  # m
    bottom: float  # m
    right: float  # m
    top: float  # m
    wall_loss: float  # dB for every wall on the straight line to the transmitter


@dataclass(frozen=True)
class Scene:
    r"""Every number of the path-loss model (W6).

    .. math:: y^{[\ell]} = P_T - P_0 - 10 \lambda \log_{10} \frac{d(p, p_a^{[\ell]})}{d_0}
              - \sum_j \varphi_{c_j}(p) + \eta^{[\ell]}
    """

    width: float = 100.0  # m; the plane is [0, width] x [0, height]
    height: float = 100.0  # m
    # p_a, m; each transmitter has a column of y.
    transmitters: tuple[tuple[float, float], ...] = ((42.0, 42.0),)
    power: float = 20.0  # P_T, dBm
    reference_loss: float = 40.0  # P_0, dB, at d_0: free space at 2.4 GHz and 1 m
    exponent: float = 2.5  # lambda > 0; 2 is free space
    # d_0 > 0, m; smaller distances count as d_0, since the model diverges at 0.
    reference_distance: float = 1.0
    # phi is `wall_loss` times the walls on the straight line: 2 behind a building, 1 in it
    buildings: tuple[Building, ...] = (
        Building(12.0, 55.0, 34.0, 75.0, 6.0),
        Building(48.0, 58.0, 62.0, 88.0, 5.0),
        Building(55.0, 15.0, 80.0, 30.0, 7.0),
        Building(74.0, 50.0, 90.0, 66.0, 4.0),
        Building(14.0, 8.0, 26.0, 22.0, 5.0),
    )
    shadowing: float = 2.0  # standard deviation of eta, dB
    # Distance in m over which the correlation of eta falls to 1/e (Gudmundson 1991); 0: none.
    correlation: float = 0.0


class Receivers(NamedTuple):
    """Measurements of L transmitters at N places."""

    places: Array  # (N, 2)  m
    y: Array  # (N, L)  dBm, with shadowing
    truth: Array  # (N, L)  dBm, without


def walls(scene: Scene, positions: Array, transmitter: int = 0) -> NDArray[np.int_]:
    """Return the number of walls of each building on the straight lines to a transmitter (W6).

    It is 0, 1 or 2: the line is clipped to the two slabs whose intersection is the rectangle. One
    that touches a corner, runs along a wall or ends on it does not cross it.

    Parameters
    ----------
    scene : Scene
        Buildings and transmitters.
    positions : array (N, 2)
        Positions of the receivers, in m.
    transmitter : int
        Index of the transmitter.

    Returns
    -------
    array (N, J) of int
        For N positions and J buildings.
    """
    start = np.asarray(scene.transmitters[transmitter], float)
    corners = np.reshape(
        [building[:4] for building in scene.buildings], (-1, 2, 2)
    ).astype(float)
    step = (np.asarray(positions, float) - start)[:, None, :]  # (N, 1, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (corners - start) / step[..., None, :]  # (N, J, low or high, axis)
    enter_slab = crossings.min(axis=2)
    leave_slab = crossings.max(axis=2)  # (N, J, 2)
    # A line along an axis is in the other axis' slab everywhere or nowhere.
    start_in_slab = (corners[:, 0] < start) & (start < corners[:, 1])  # (J, 2)
    parallel = np.broadcast_to(step == 0.0, enter_slab.shape)
    always = np.where(start_in_slab, np.inf, -np.inf)
    enter_slab = np.where(parallel, -always, enter_slab)
    leave_slab = np.where(parallel, always, leave_slab)
    enter = enter_slab.max(axis=2)
    leave = leave_slab.min(axis=2)  # (N, J)  as shares of the line
    hit = np.maximum(enter, 0.0) < np.minimum(leave, 1.0)
    return hit * ((enter > 0.0).astype(int) + (leave < 1.0))


def _log_distance(scene: Scene, positions: Array, transmitter: int) -> Array:
    """Return log10(d / d_0) (N,), with distances below d_0 counted as d_0."""
    away = np.asarray(positions, float) - scene.transmitters[transmitter]
    return np.log10(np.maximum(np.hypot(*away.T) / scene.reference_distance, 1.0))


def field(scene: Scene, positions: Array) -> Array:
    """Return the received power without shadowing, in dBm: W6 without eta.

    Parameters
    ----------
    scene : Scene
        The path-loss model.
    positions : array (N, 2)
        Positions of the receivers, in m.

    Returns
    -------
    array (N, L)
        For L transmitters.
    """
    wall_losses = np.array([building.wall_loss for building in scene.buildings])
    columns = [
        scene.power
        - scene.reference_loss
        - 10.0 * scene.exponent * _log_distance(scene, positions, transmitter)  # W6
        - walls(scene, positions, transmitter) @ wall_losses
        for transmitter in range(len(scene.transmitters))
    ]
    return np.stack(columns, axis=1)


def features(scene: Scene, positions: Array, transmitter: int = 0) -> Array:
    """Return the inputs in which `field` is linear: log10(d / d_0) and the walls of each building.

    Parameters
    ----------
    scene : Scene
        The path-loss model.
    positions : array (N, 2)
        Positions of the receivers, in m.
    transmitter : int
        Index of the transmitter.

    Returns
    -------
    array (N, 1 + J)
    """
    log_distance = _log_distance(scene, positions, transmitter)[:, None]
    return np.hstack([log_distance, walls(scene, positions, transmitter)])


def near_edge(scene: Scene, positions: Array, radius: float) -> NDArray[np.bool_]:
    """Return which positions have a jump of `field` about `radius` or less away.

    True where the walls to any transmitter differ between the position and one of 16 around it.

    Parameters
    ----------
    scene : Scene
        The path-loss model.
    positions : array (N, 2)
        In m.
    radius : float
        In m.

    Returns
    -------
    array (N,) of bool
    """
    angles = np.arange(16) * np.pi / 8.0
    is_near = np.zeros(len(positions), bool)
    for transmitter in range(len(scene.transmitters)):
        walls_at_position = walls(scene, positions, transmitter)
        for angle in angles:
            neighbours = positions + radius * np.array([np.cos(angle), np.sin(angle)])
            is_near |= np.any(
                walls(scene, neighbours, transmitter) != walls_at_position, axis=1
            )
    return is_near


def grid(scene: Scene, cells: int = 50) -> Array:
    """Return the centres of equal cells of the plane, row by row from below.

    Parameters
    ----------
    scene : Scene
        Gives width and height.
    cells : int
        Number of cells along each side.

    Returns
    -------
    array (cells^2, 2)
        In m.
    """
    centres = (np.arange(cells) + 0.5) / cells
    x, y = np.meshgrid(centres * scene.width, centres * scene.height)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def receivers(
    scene: Scene,
    rng: np.random.Generator,
    count: int = 400,
    area: Callable[[Array], NDArray[np.bool_]] | None = None,
) -> Receivers:
    """Draw measurements at positions that are uniform over the plane, or over a part of it.

    Parameters
    ----------
    scene : Scene
        The path-loss model.
    rng : numpy.random.Generator
        Draws all positions first, then all shadowing.
    count : int
        Number N of measurements.
    area : callable, optional
        From positions (n, 2) to which of them are allowed; by default all.

    Raises
    ------
    ValueError
        If (almost) no position is allowed.
    """
    upper_corner = (scene.width, scene.height)
    positions: Array = np.empty((0, 2))
    for _ in range(MAX_REJECTION_ROUNDS):
        new = rng.uniform(0.0, upper_corner, (count, 2))
        positions = np.concatenate([positions, new if area is None else new[area(new)]])
        if len(positions) >= count:
            break
    else:
        raise ValueError(
            "area must allow a larger part of the plane; it allows almost no position"
        )
    positions = positions[:count]
    truth = field(scene, positions)
    eta = scene.shadowing * rng.standard_normal(truth.shape)  # (N, L)
    if scene.correlation:
        gaps = positions[:, None] - positions  # (N, N, 2)
        distances = np.hypot(gaps[..., 0], gaps[..., 1])
        # Without the jitter two receivers at one position would make it singular.
        covariance = np.exp(-distances / scene.correlation) + 1e-10 * np.eye(count)
        eta = np.linalg.cholesky(covariance) @ eta
    return Receivers(positions, truth + eta, truth)
