"""Pictures that move: frames behind a slider, as HTML that needs neither a server nor a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from html import escape
from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["slider"]

# Plain attributes, no ids and no <script>: several of them can stand on one page, and a page that
# drops them for safety shows the first frame.
SHOW = "[...this.parentNode.querySelectorAll('img')].forEach((f, i) => f.hidden = i != this.value)"
PLAY = (
    "const s = this.nextElementSibling; clearInterval(this.t); s.value = 0; s.oninput(); "
    "this.t = setInterval(() => { s.stepUp(); s.oninput(); "
    "if (s.value == s.max) clearInterval(this.t); }, 150)"
)
PAGE = """<div>
{images}
<br><button type="button" onclick="{play}">play</button>
<input type="range" min="0" max="{last}" value="0" style="width: 60%" aria-label="{alt}" \
oninput="{show}">
</div>"""


def slider(
    figure: Figure,
    update: Callable[[int], object],
    frames: int,
    alt: str,
    dpi: float = 72.0,
) -> str:
    """Return HTML that shows a figure frame by frame, with a slider and a button that plays it.

    Parameters
    ----------
    figure : Figure
        Drawn on by `update`. Its axes stay where its layout puts them in frame 0.
    update : callable
        Changes the figure to frame 0, 1, ..., `frames` - 1.
    frames : int
        Number of frames, >= 1.
    alt : str
        What is to be seen, for those who do not see it.
    dpi : float
        Of the frames, which are all stored in the page.

    Examples
    --------
    >>> figure = Figure(figsize=(1, 1))
    >>> point, = figure.subplots().plot([0], [0], "o")
    >>> page = slider(figure, lambda k: point.set_data([k], [k]), 2, "a point that moves")
    >>> page.count("<img"), page.count("hidden")
    (2, 2)
    """
    images = []
    for frame in range(frames):
        update(frame)
        if frame == 0:
            figure.draw_without_rendering()
            # else the axes would move with every title
            figure.set_layout_engine("none")
        stored = BytesIO()
        # no trace of the version that drew it: the same frames are the same bytes
        figure.savefig(stored, format="png", dpi=dpi, metadata={"Software": None})
        source = b64encode(stored.getvalue()).decode()
        text = escape(f"{alt} (frame {frame + 1} of {frames})")
        hidden = " hidden" if frame else ""
        images.append(
            f'<img alt="{text}" src="data:image/png;base64,{source}"{hidden}>'
        )
    return PAGE.format(
        images="\n".join(images), play=PLAY, last=frames - 1, alt=escape(alt), show=SHOW
    )
