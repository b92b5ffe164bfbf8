"""Pictures of the built pages: smaller ones, and on a phone their panels one below the other.

A picture has 256 colours and becomes WebP where that makes it smaller, as do the frames of films.
A wide one is shown a second time in pieces, of which the style sheet chooses on a phone; a piece is
a window on the same file, and is cut where a whole column or row is empty.
"""

import html
import re
from base64 import b64decode, b64encode
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageSequence

COLOURS = 256
INK = 8  # levels, of 255, by which a pixel differs from the ground
WIDEST = 760  # pixels of a piece, at 150 per inch: its text of 10 points is 9.9 pixels on a phone
LEAST_GAP = 5  # pixels between two panels
USUAL_GAP = 9  # pixels: a narrower one may stand between the labels of an axis and its ticks
LEGEND_SHARE = 0.3  # of the height, that a legend above all panels may take
MARGIN = 6  # pixels that a piece keeps around what is in it
IMAGE = re.compile(r'<img alt="([^"]*)" src="([^"]*_images/[^"/]+\.png)" />')
STORED = re.compile(r'(\b_images/)([^"/]+\.png)')
FRAME = re.compile(r'(?<=src=")data:image/png;base64,([\w+/=]{100,})(?=")')


def smaller(stored: bytes) -> tuple[bytes, str]:
    """Return a PNG as lossless WebP, a still one with few colours, and its format.

    One that would be no smaller is returned as it is.
    """
    output = BytesIO()
    exact = {"format": "webp", "lossless": True, "quality": 75, "method": 3}
    with Image.open(BytesIO(stored)) as picture:
        if getattr(picture, "is_animated", False):
            durations = [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]
            loop = picture.info.get("loop", 0)
            picture.save(output, save_all=True, duration=durations, loop=loop, **exact)
        else:
            quantized = picture.convert("RGBA").quantize(
                COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
            )
            quantized.convert("RGBA").save(output, **exact)
    return min((stored, "png"), (output.getvalue(), "webp"), key=lambda made: len(made[0]))


class Piece(NamedTuple):
    """A part of a picture in pixels: left, top, right and bottom."""

    left: int
    top: int
    right: int
    bottom: int


def gaps(used: Any, least: int) -> list[tuple[int, int]]:
    """Return the runs (first, stop) of at least so many False of a vector."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], used, [True]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if b - a >= least]


def cuts(ink: Any) -> list[int]:
    """Return the columns between the panels of a picture (H, W), which stand side by side.

    Two, three or four panels are about as wide as each other; else one gap near the middle does.
    Beside a panel its labels come first, so that the first gap of the usual width is the one.
    """
    width = ink.shape[1]
    inner = [(a, b) for a, b in gaps(ink.any(axis=0), LEAST_GAP) if a > 0 and b < width]
    for n_panels in (2, 3, 4):
        chosen = []
        for panel in range(1, n_panels):
            low, high = width * (panel / n_panels - 0.085), width * (panel / n_panels + 0.075)
            near = [(a, b) for a, b in inner if low <= (a + b) / 2 <= high]
            chosen += ([gap for gap in near if gap[1] - gap[0] >= USUAL_GAP] or near)[:1]
        if len(chosen) == n_panels - 1:
            return [(a + b) // 2 for a, b in chosen]
    middle = [(a, b) for a, b in inner if b - a >= USUAL_GAP and 0.3 < (a + b) / 2 / width < 0.7]
    return [(a + b) // 2 for a, b in middle[:1]]


def trimmed(ink: Any, piece: Piece) -> Piece:
    """Return a piece without what is empty at its edges."""
    inside = ink[piece.top : piece.bottom, piece.left : piece.right]
    columns, rows = (np.flatnonzero(inside.any(axis=axis)) for axis in (0, 1))
    return Piece(
        max(piece.left, piece.left + int(columns[0]) - MARGIN),
        max(piece.top, piece.top + int(rows[0]) - MARGIN),
        min(piece.right, piece.left + int(columns[-1]) + 1 + MARGIN),
        min(piece.bottom, piece.top + int(rows[-1]) + 1 + MARGIN),
    )


def halves(ink: Any, piece: Piece) -> list[Piece]:
    """Return a legend in pieces that are not too wide, cut at the widest gap about its middle."""
    piece = trimmed(ink, piece)
    width = piece.right - piece.left
    inside = ink[piece.top : piece.bottom, piece.left : piece.right]
    near = [(b - a, (a + b) // 2) for a, b in gaps(inside.any(axis=0), LEAST_GAP)]
    near = [(gap, at) for gap, at in near if 0.3 < at / width < 0.7]
    if width <= WIDEST or not near:
        return [piece]
    cut = piece.left + max(near)[1]
    return [*halves(ink, piece._replace(right=cut)), *halves(ink, piece._replace(left=cut))]


def pieces(picture: Image.Image) -> list[Piece]:
    """Return the pieces of a picture in reading order; one that is narrow has none."""
    pixels = np.asarray(picture.convert("RGBA")).astype(int)
    ground = pixels[-1, -1]
    ink = np.abs(pixels - ground).max(axis=2) > INK
    if ground[3] == 0:
        ink = pixels[..., 3] > INK
    height, width = ink.shape
    if width <= WIDEST:
        return []
    below = [(a + b) // 2 for a, b in gaps(ink.any(axis=1), 3) if 0 < a < LEGEND_SHARE * height]
    for top in (0, *below):
        columns = cuts(ink[top:])
        if columns:
            panels = [
                trimmed(ink, Piece(left, top, right, height))
                for left, right in pairwise((0, *columns, width))
            ]
            legend = halves(ink, Piece(0, 0, width, top)) if top else []
            return [*legend, *panels]
    return []


def in_pieces(alt: str, address: str, path: Path) -> str:
    """Return the markup of a picture: as it is, and if it is wide a second time in pieces."""
    with Image.open(path) as picture:
        has_ground = picture.convert("RGBA").getpixel((picture.width - 1, picture.height - 1))[3]
        kind = "grounded" if has_ground else "figure"
        is_film = getattr(picture, "is_animated", False)
        found = [] if is_film else pieces(picture)
        width, height = picture.size
    whole = f'<img alt="{alt}" class="{kind} whole" src="{address}"/>'
    if not found:
        return whole.replace(" whole", "")
    windows = []
    for left, top, right, bottom in found:
        across, up = (right - left) / width, (bottom - top) / height
        style = (
            f"--x:{left / width / across:.4f};--y:{top / height / up:.4f};--w:{1 / across:.4f};"
            f"aspect-ratio:{right - left}/{bottom - top}"
        )
        windows.append(
            f'<span class="piece" style="{style}"><img alt="" class="{kind}" loading="lazy" '
            f'src="{address}"/></span>'
        )
    return f'<span class="panels">{whole}{"".join(windows)}</span>'


def lay_out(folder: Path) -> None:
    """Write into the built pages how each picture is shown; a second time changes nothing."""
    for page in folder.rglob("*.html"):
        before = page.read_text("utf-8")

        def show(image: re.Match[str], page: Path = page) -> str:
            path = (page.parent / html.unescape(image[2])).resolve()
            return in_pieces(image[1], image[2], path)

        after = IMAGE.sub(show, before)
        if after != before:
            page.write_text(after, "utf-8")


def shrink(folder: Path) -> None:
    """Make the pictures of the built pages smaller, and the frames within them."""
    renamed = {}
    for path in folder.glob("_images/*.png"):
        content, suffix = smaller(path.read_bytes())
        if suffix == "webp":
            path.with_suffix(".webp").write_bytes(content)
            path.unlink()
            renamed[path.name] = path.with_suffix(".webp").name

    def new_name(image: re.Match[str]) -> str:
        return image[1] + renamed.get(image[2], image[2])

    def new_frame(frame: re.Match[str]) -> str:
        content, suffix = smaller(b64decode(frame[1]))
        return f"data:image/{suffix};base64,{b64encode(content).decode()}"

    for path in folder.rglob("*.html"):
        before = path.read_text("utf-8")
        after = FRAME.sub(new_frame, STORED.sub(new_name, before))
        if after != before:
            path.write_text(after, "utf-8")
