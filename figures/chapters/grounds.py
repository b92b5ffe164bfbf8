"""One picture for white and for dark pages: without a ground, in colours that read on both.

A colour is judged by its luminance, from 0 to 1. Lines keep 3 : 1 to white and to GitHub's night,
text 4 : 1, and its strokes are a little heavier for that.
"""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from bbb_numpy.plots.style import GREY, PALE, SKY

LINES = (0.16, 0.30)
TEXT = 0.19
INK = "#797979"
LEAST_OPACITY = 0.9  # of lines and points: on either ground they then keep 3 : 1 on the site
TINTS = {PALE: (0, 0.54, 0.87, 0.15), SKY: (0, 0.54, 0.87, 0.5)}  # on white the same as before
PARTS = "color", "edgecolor", "facecolor", "markeredgecolor", "markerfacecolor"


def luminance(colour: Any) -> Any:
    """Return the relative luminance of colours (..., 3) from 0 to 1, as WCAG defines it."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def of_luminance(colour: Any, target: float) -> Any:
    """Return a colour (3,), mixed with black or white until it is as light as wanted."""
    extreme = 1.0 if luminance(colour) < target else 0.0
    shares = np.linspace(0, 1, 512)[:, None]
    mixed = shares * extreme + (1 - shares) * colour
    return mixed[np.argmin(np.abs(luminance(mixed) - target))]


def on_both(artist: Artist, part: str, colour: Any) -> Any:
    """Return what a colour of an artist becomes; white is left open, but not on lines and marks."""
    *_, opacity = to_rgba(colour)
    name = to_hex(colour).upper()
    rgb = np.array(to_rgba(colour)[:3])
    if isinstance(artist, Text):
        return (*of_luminance(rgb, TEXT), opacity)
    if name in TINTS and part == "facecolor":
        *tint, share = TINTS[name]
        return (*tint, share * opacity)
    if isinstance(artist, Line2D | PathCollection) and opacity:
        opacity = max(opacity, LEAST_OPACITY)
    if isinstance(artist, Line2D) and rgb.min() == 1:
        return (*rgb, opacity)
    if rgb.min() > 0.8 and part == "facecolor":  # white, or a light grey
        return (0.5, 0.5, 0.5, 2 * opacity * (1 - rgb.mean()))
    smallest, largest = LINES
    target = largest if name == GREY else min(max(luminance(rgb), smallest), largest)
    return (*of_luminance(rgb, target), opacity)


def recolour(artist: Artist) -> None:
    """Give an artist the colours that read on both grounds."""
    if getattr(artist, "get_array", lambda: None)() is not None:
        if getattr(artist, "colors", None) is None:
            return  # a map has its own
        artist.set_array(None)  # contours in one colour
    new_colours = {}
    for part in PARTS:
        get = getattr(artist, f"get_{part}", None)
        if get and hasattr(artist, f"set_{part}"):
            colours = get()
            alpha = artist.get_alpha()
            is_several = isinstance(colours, np.ndarray) and colours.ndim == 2
            recoloured = [
                on_both(artist, part, to_rgba(c, alpha))
                for c in (colours if is_several else [colours])
            ]
            new_colours[part] = recoloured if is_several else recoloured[0]
    filled = isinstance(artist, Patch) and not isinstance(artist, FancyArrowPatch)
    if filled and artist.get_facecolor() == artist.get_edgecolor():
        new_colours["edgecolor"] = "none"
    artist.set_alpha(None)
    for part, colour in new_colours.items():
        getattr(artist, f"set_{part}")(colour)
    if isinstance(artist, Text):
        artist.set_path_effects([withStroke(linewidth=0.5, foreground=new_colours["color"])])


def for_both_grounds(figure: Figure) -> Figure:
    """Return a figure that was drawn for white paper, to be saved without its ground."""
    figure.draw_without_rendering()  # which makes the ticks
    for ax in figure.axes:  # and may make more
        ax.tick_params(which="both", color=INK, labelcolor=INK)
    for artist in figure.findobj():
        recolour(artist)
        for hidden in ("arrow_patch", "_bbox_patch"):
            if getattr(artist, hidden, None) is not None:
                recolour(getattr(artist, hidden))
    return figure
