"""The figures of the lectures: those of the book, black on white, in letters for the tenth row.

Usage: ``python figures/slides.py [NAME ...]`` draws all figures of site/slides, or those that are
named, into the folder slides of this one. Each is the book's figure on smaller paper, so that all
letters are larger on the screen; legends get as few columns, and titles as many lines, as then fit.
"""

import re
import sys
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from PIL import Image
from PIL.PngImagePlugin import PngInfo

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from derivations import FIGURES  # noqa: E402

FOLDER = HERE / "slides"
PICTURE = re.compile(r"figures/(?:slides/)?([\w-]+)\.png")
PAPER = (6.8, 3.3)  # inches; slides.css shows it 1200 pixels wide, or 580 high: 176 an inch
SMALLEST_WIDTH = 6.4  # inches, before that: single panels of the book are drawn for phones
PANELS = {"shared-noise": (0, 1, 3)}  # the axes that are shown, side by side
SMALLEST_LETTERS = 8.5  # points
POINTS_PER_INCH = 72
DPI = 200
COLOURS = 64
WORD = re.compile(r"(?:\$[^$]*\$|\S)+")
ABOVE = 8  # the code of "lower center", where the legends above axes are anchored
COMPACT: dict[str, Any] = {
    "frameon": False, "fontsize": SMALLEST_LETTERS, "handlelength": 1.8, "columnspacing": 1.0,
    "handletextpad": 0.5, "labelspacing": 0.25,
}  # fmt: skip
OF_CELL = 0.8  # how much of the place of its axes a title may fill
OF_LEGEND = 0.92  # and a legend


def names() -> list[str]:
    """Return the names of the figures of all lectures, without the moving one."""
    texts = [path.read_text("utf-8") for path in sorted(HERE.parent.glob("site/slides/*.md"))]
    shown = {name for text in texts for name in PICTURE.findall(text)}
    return sorted(shown - {"training"})


def extent(artist: Artist, figure: Figure) -> Any:
    """Return the box of an artist as it is drawn, in pixels."""
    return artist.get_window_extent(FigureCanvasAgg(figure).get_renderer())


def cell_size(ax: Axes, figure: Figure) -> tuple[float, float]:
    """Return width and height of the part of a figure that is the axes', in pixels."""
    place = ax.get_subplotspec()
    if place is None:
        return figure.bbox.width, figure.bbox.height
    grid = place.get_gridspec()
    return (
        figure.bbox.width * len(place.colspan) / grid.ncols,
        figure.bbox.height * len(place.rowspan) / grid.nrows,
    )


def break_lines(text: Text, needed: float, available: float) -> None:
    """Break a text, which needs so many pixels of those available, between its words."""
    n_lines = ceil(needed / available)
    if n_lines <= 1:
        return
    words = WORD.findall(text.get_text())
    length = sum(len(word) + 1 for word in words) / n_lines
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) / 2 > length and len(lines) < n_lines:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    text.set_text("\n".join(lines))


def fit_labels(ax: Axes, figure: Figure) -> None:
    """Break titles and labels of axes that are longer than their place."""
    width, height = cell_size(ax, figure)
    for title in (ax.title, ax._left_title, ax.xaxis.label):
        break_lines(title, extent(title, figure).width, OF_CELL * width)
    break_lines(ax.yaxis.label, extent(ax.yaxis.label, figure).height, 0.7 * height)


def fit_legend(ax: Axes, figure: Figure) -> None:
    """Take columns from the legend above the axes until it fits, and put the title above it."""
    legend = ax.get_legend()
    if legend is None or legend._loc != ABOVE:
        return
    labels = [text.get_text() for text in legend.get_texts()]
    handles = legend.legend_handles
    named = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    handles = [named.get(label, handle) for label, handle in zip(labels, handles, strict=True)]
    width, _ = cell_size(ax, figure)
    for columns in range(legend._ncols, 0, -1):
        legend = ax.legend(
            handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, **COMPACT
        )
        if extent(legend, figure).width < OF_LEGEND * width:
            break
    if ax.get_title(loc="left"):
        height = extent(legend, figure).height * POINTS_PER_INCH / figure.dpi
        ax.set_title(ax.get_title(loc="left"), loc="left", fontsize="medium", pad=height + 7)


def fit_figure_legend(legend: Legend, figure: Figure) -> None:
    """Take columns from a legend above all axes until it fits."""
    labels = [text.get_text() for text in legend.get_texts()]
    handles = legend.legend_handles
    columns = legend._ncols
    while columns > 1 and extent(legend, figure).width > 0.98 * figure.bbox.width:
        columns -= 1
        legend.remove()
        legend = figure.legend(
            handles, labels, loc="outside upper center", ncols=columns, frameon=False
        )


def keep_inside(text: Text, figure: Figure) -> None:
    """Move a text to the left that would be cut at the right."""
    beyond = extent(text, figure).x1 - figure.bbox.x1
    if beyond > 0 and text.get_text():
        to_pixels = text.get_transform()
        x, y = to_pixels.transform(text.get_position())
        text.set_position(to_pixels.inverted().transform((x - beyond - 2, y)))


def show_panels(figure: Figure, chosen: tuple[int, ...]) -> None:
    """Leave only the chosen axes, side by side and lower."""
    shown = [figure.axes[number] for number in chosen]
    for ax in figure.axes:
        if ax not in shown:
            ax.remove()
    grid = figure.add_gridspec(1, len(shown))
    for column, ax in enumerate(shown):
        ax.set_subplotspec(grid[0, column])
    figure.set_size_inches(PAPER)


def for_slides(figure: Figure) -> Figure:
    """Return a figure on smaller paper, its letters as large as before."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # which makes the labels of ticks
    layout = figure.get_layout_engine()
    figure.set_layout_engine("none")
    size = np.maximum(figure.get_size_inches(), (SMALLEST_WIDTH, 0))
    figure.set_size_inches(size * np.min(PAPER / size))
    for text in figure.findobj(Text):
        text.set_fontsize(max(SMALLEST_LETTERS, text.get_fontsize()))
    for legend in list(figure.legends):
        fit_figure_legend(legend, figure)
    for ax in figure.axes:
        fit_labels(ax, figure)
        fit_legend(ax, figure)
        for text in ax.texts:
            keep_inside(text, figure)
    figure.set_layout_engine(layout)
    return figure


def write(name: str, folder: Path = FOLDER) -> Path:
    """Draw one figure into `folder`; its file says how many pixels its smallest letters have."""
    figure = FIGURES[name]()
    if name in PANELS:
        show_panels(figure, PANELS[name])
    for_slides(figure)
    letters = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip()]
    png = BytesIO()
    figure.savefig(png, dpi=DPI, facecolor="white")
    note = PngInfo()
    note.add_text("smallest letters", f"{min(letters) * DPI / POINTS_PER_INCH:.1f}")
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.png"
    picture = Image.open(png).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(path, dpi=(DPI, DPI), optimize=True, pnginfo=note)
    return path


if __name__ == "__main__":
    for chosen in sys.argv[1:] or names():
        print(write(chosen))
