"""Smaller pictures: with 256 colours where that makes the file smaller, the frames of films too."""

import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

from PIL import Image

COLOURS = 256
FRAME = re.compile(r"(data:image/png;base64,)([^\"]+)")


def smaller(stored: bytes) -> bytes:
    """Return a PNG with a palette, or as it is if that is no larger."""
    output = BytesIO()
    with Image.open(BytesIO(stored)) as picture:
        if getattr(picture, "is_animated", False):
            return stored
        quantized = picture.convert("RGBA").quantize(
            COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        quantized.save(output, format="png", optimize=True)
    return min(stored, output.getvalue(), key=len)


def shrink(folder: Path) -> None:
    """Make the pictures of the built pages smaller."""
    for path in (*folder.glob("_images/*.png"), *folder.glob("_downloads/*/*.png")):
        path.write_bytes(smaller(path.read_bytes()))
    for path in (folder / "notebooks").glob("*.html"):
        page = path.read_text("utf-8")

        def replace_frame(frame: re.Match[str]) -> str:
            return frame[1] + b64encode(smaller(b64decode(frame[2]))).decode()

        path.write_text(FRAME.sub(replace_frame, page), "utf-8")
