"""A picture that moves: every frame is in the page, once, and the page asks nobody for more."""

import re
from base64 import b64decode
from io import BytesIO

import matplotlib.image as images
import numpy as np
from matplotlib.figure import Figure

from bbb_course.moving import slider


def test_all_frames_are_in_the_page_in_order_and_the_first_is_shown():
    figure = Figure(figsize=(1, 1))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    bar = ax.axvspan(0, 1, color="black")
    ax.set_xlim(0, 3)
    page = slider(figure, lambda k: bar.set_x(k), 3, 'a bar < "that" moves', dpi=30)
    frames = re.findall(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"( hidden)?>', page)
    assert [hidden for *_, hidden in frames] == ["", " hidden", " hidden"]
    assert frames[2][0] == "a bar &lt; &quot;that&quot; moves (frame 3 of 3)"
    for k, (_, source, _) in enumerate(frames):
        dark = images.imread(BytesIO(b64decode(source)))[15, :, 0] < 0.5
        assert abs(np.flatnonzero(dark).mean() - (k + 0.5) * 10 + 0.5) < 1
    assert re.search(r'<input type="range" min="0" max="2" value="0"', page)
    assert "<button" in page
    assert not re.search(r"https?:|<script|<link", page)
