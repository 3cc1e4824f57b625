"""Plots, which need matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simstore._simstore import Evaluation


def plot(evaluation: Evaluation, ax: Axes | None) -> Axes:
    """Draws recall, precision and F1 against k."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: `pip install matplotlib`; to_svg() needs nothing") from error
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    points = evaluation.points.to_pylist()
    several = len(evaluation.best) > 1
    for number, (profile, best) in enumerate(evaluation.best.items()):
        of_profile = [point for point in points if point["profile"] == profile]
        for name, style in (("recall", "--"), ("precision", ":"), ("f1", "-")):
            shown = [(point["k"], point[name]) for point in of_profile if point[name] is not None]
            label = {"f1": "F1"}.get(name, name)
            ax.plot(
                [k for k, _ in shown],
                [share for _, share in shown],
                style,
                color=f"C{number}",
                label=f"{profile}: {label}" if several else label,
            )
        ax.plot([best], [of_profile[best]["f1"]], "o", color=f"C{number}", fillstyle="none", markersize=10)
    ax.set_xlabel("k, bits")
    ax.set_ylim(-0.02, 1.02)
    ax.legend()
    return ax
