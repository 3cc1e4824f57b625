"""`simstore.Evaluation.plot`: plots with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simstore._simstore import Evaluation


def plot(evaluation: Evaluation, ax: Axes | None) -> Axes:
    """Plots recall, precision and F1 of each profile against the distance k, and marks the best k of each profile.

    Draws on `ax`, or on new axes if `ax` is None. Returns the axes.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: `pip install matplotlib`; to_svg() needs nothing") from error
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    points = evaluation.points.to_pylist()
    has_several_profiles = len(evaluation.best) > 1
    for number, (profile, best) in enumerate(evaluation.best.items()):
        # One point for each k from 0, so the index of a point is its k.
        profile_points = [point for point in points if point["profile"] == profile]
        for metric, style in (("recall", "--"), ("precision", ":"), ("f1", "-")):
            values = [(point["k"], point[metric]) for point in profile_points if point[metric] is not None]
            label = {"f1": "F1"}.get(metric, metric)
            ax.plot(
                [k for k, _ in values],
                [value for _, value in values],
                style,
                color=f"C{number}",
                label=f"{profile}: {label}" if has_several_profiles else label,
            )
        ax.plot([best], [profile_points[best]["f1"]], "o", color=f"C{number}", fillstyle="none", markersize=10)
    ax.set_xlabel("k, bits")
    ax.set_ylim(-0.02, 1.02)
    ax.legend()
    return ax
