"""The playground: its numbers are Python's, its lessons show, it needs no network, it fits a phone.

What needs a browser is skipped where none is installed.
"""

import html
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from project.book import DEFINED, ROOT
from project.test_site import pages

from bbb_numpy import plain
from bbb_numpy.sampling.mcmc.leapfrog import Phase, hamiltonian, leapfrog
from bbb_numpy.sampling.mcmc.metrics import DiagonalMetric

FOLDER = ROOT / "site" / "playground"
CLOSE = 1e-12  # relative, to the largest entry
PHONE = 390  # pixels


DRIVE = """<!doctype html><body style="margin: 0">
<iframe id="frame" src="playground/{page}#{address}" width="{width}" height="{height}"></iframe>
<pre id="found"></pre><script>
window.onload = async () => {{
  const it = frame.contentWindow, run = code => it.eval(code), said = [];
  const $ = id => it.document.getElementById(id);
  it.addEventListener("error", event => said.push(event.message));
  try {{
    found.textContent = JSON.stringify(await (async () => {{ {script} }})());
  }} catch (error) {{ found.textContent = JSON.stringify({{error: String(error)}}); }}
}};</script>"""


def browsed(script, page="index.html", address="", width=1280, height=900):
    """Return what `script` makes of a page of the playground, in a headless Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        pytest.skip("chromium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shutil.copytree(FOLDER, f"{folder}/playground")
        drive = DRIVE.format(page=page, address=address, width=width, height=height, script=script)
        Path(folder, "test.html").write_text(drive, "utf-8")
        command = [program, *(f"--{each}" for each in (
            "headless", "no-sandbox", "disable-gpu", "allow-file-access-from-files",
            "disable-background-networking", "disable-component-update", "disable-sync",
            "host-resolver-rules=MAP * ~NOTFOUND", f"user-data-dir={folder}/profile",
            "virtual-time-budget=20000", "dump-dom",
        )), f"file://{folder}/test.html"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    text = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert text, done.stderr[-2000:]
    found = json.loads(html.unescape(text[1]))
    assert "error" not in found, found
    return found


def test_the_site_carries_the_playground_and_a_zip_that_opens_alone(tmp_path):
    pages.carry_playground(tmp_path)
    names = {f"playground/{path.name}" for path in FOLDER.iterdir()}
    with zipfile.ZipFile(tmp_path / "playground/playground.zip") as packed:
        assert {name for name in packed.namelist() if not name.endswith("/")} == names
    assert all((tmp_path / name).is_file() for name in names)
    for page in FOLDER.glob("*.html"):
        assert '<html lang="en">' in page.read_text("utf-8")  # in it `.book` is not shown
        assert 'class="site"' in (tmp_path / "playground" / page.name).read_text("utf-8")


def test_a_link_of_the_book_to_a_preset_leads_to_the_playground_of_the_site():
    link = pages.new_link(
        "[See](", "../site/playground/index.html#preset=gap", "derivations/p.md", "tags/k.md"
    )
    assert link.endswith("(src:../playground/index#preset=gap)")


def problem(net, samples, rows, prior, noise, pi, rho):
    """Return the arguments of plain.value_and_grad."""
    rng = np.random.default_rng([*net, samples, rows])
    theta = plain.init(net, rng, rho)
    eps = rng.standard_normal((samples, theta.size // 2))
    x, y = rng.standard_normal((rows, net[0])), rng.standard_normal((rows, net[-1]))
    return net, theta, eps, x, y, prior, noise, pi


PROBLEMS = [
    problem((1, 20, 1), 1, 100, 1.0, 0.3, 0.1, -2.0),
    problem((1, 20, 1), 16, 10, 0.1, 1.0, 1.0, -5.0),
    problem((3, 4, 5, 2), 3, 7, 2.5, 0.7, 0.25, 1.5),
    problem((2, 1, 1), 2, 1, 5.0, 2.0, 0.01, -30.0),
    problem((1, 3), 4, 5, 1.0, 0.5, 0.5, 40.0),
    problem((1, 5, 1), 1, 0, 1.0, 0.3, 1.0, 0.0),
]
PLANTED = {  # errors in bbb.js, each of which has to be noticed
    "- e * e / 2": "+ e * e / 2",
    "+ Math.log(noise) + LOG_2PI / 2": "+ LOG_2PI / 2",
    "logPrior += -Math.log(prior)": "logPrior += Math.log(prior)",
    "-pi / sigma[j] * slope[j]": "-pi / sigma[j]",
    "rhoData[j] += gW[j] * e": "rhoData[j] += gW[j]",
    "const e = eps[s * P + j] * slope[j]": "const e = eps[j] * slope[j]",
    "if (!(a[at] > 0)) slope[at] = 0": "",
    "if (l) gate(below, a)": "gate(below, tape[0])",
    "if (!(z[at] > 0)) z[at] = 0": "z[at] = Math.abs(z[at])",
    "if (tape.length < layers.length) relu(z)": "relu(z)",
    "w[W + i * dOut + j];\n          z": "w[W + j * dIn + i];\n          z",
    "Math.log1p(Math.exp(-Math.abs(rho)))": "Math.log(1 + Math.exp(-Math.abs(rho)))",
    "grad[P + j] = rhoWidth[j] + rhoPrior[j]": "grad[P + j] = rhoWidth[j] - rhoPrior[j]",
}


def listed(given):
    return [np.ravel(each).tolist() if isinstance(each, np.ndarray) else each for each in given]


def apart(found, wanted):
    """Return how far value and gradient are from Python's, relative to the largest entry."""
    wanted = np.concatenate([[wanted[0]], wanted[1]])
    got = np.array([np.nan if each is None else each for each in found], float)
    with np.errstate(invalid="ignore"):
        parts = [(got[:1], wanted[:1])] + [
            (g, w) for g, w in zip(np.split(got[1:], 2), np.split(wanted[1:], 2), strict=True)
        ]
        return max(np.max(np.abs(g - w)) / max(np.max(np.abs(w)), 1e-300) for g, w in parts)


@pytest.mark.slow
def test_value_and_gradient_are_those_of_python_and_every_planted_error_is_noticed():
    source = (FOLDER / "bbb.js").read_text("utf-8")
    assert all(source.count(old) == 1 for old in PLANTED)
    sources = [source, *(source.replace(old, new) for old, new in PLANTED.items())]
    found = browsed(
        f"""const made = {json.dumps(sources)}.map(text => new Function(text + "; return bbb")());
        const given = {json.dumps([listed(each) for each in PROBLEMS])};
        const flat = (net, ...rest) =>
          [net, ...rest.map(each => Array.isArray(each) ? Float64Array.from(each) : each)];
        return made.map(bbb => given.map(each => {{
          const {{value, grad}} = bbb.valueAndGrad(...flat(...each));
          return [value, ...grad];
        }}));"""
    )
    wanted = [plain.value_and_grad(*each) for each in PROBLEMS]
    worst = [max(apart(f, w) for f, w in zip(each, wanted, strict=True)) for each in found]
    assert worst[0] < CLOSE
    unseen = [old for old, far in zip(PLANTED, worst[1:], strict=True) if not far > 1e3 * CLOSE]
    assert not unseen


def densities(kind):
    """Return a target of leapfrog.js, as its JavaScript and as a target of the library."""

    def gaussian(z):
        precision = np.array([[1, -0.9], [-0.9, 1]]) / (1 - 0.9**2)
        return -0.5 * np.sum(z @ precision * z, axis=1), -z @ precision

    def funnel(z):
        x, y = z.T
        square = x**2 * np.exp(-2 * y)
        slopes = -x * np.exp(-2 * y), -y + square - 1
        return -(y**2) / 2 - square / 2 - y, np.stack(slopes, axis=1)

    def hills(z):
        centres = np.array([[-1.7, 0.0], [1.7, 0.3]])
        far = z[:, None] - centres
        density = np.exp(-np.sum(far**2, axis=2) / (2 * 0.5**2))
        slopes = np.sum(-density[:, :, None] * far, axis=1) / 0.5**2
        return np.log(density.sum(axis=1)), slopes / density.sum(axis=1, keepdims=True)

    return {
        "gaussian": ("hmc.gaussian(1, 1, 0.9)", gaussian),
        "funnel": ("hmc.funnel(1)", funnel),
        "hills": ("hmc.hills([[-1.7, 0], [1.7, 0.3]], 0.5)", hills),
    }[kind]


PATHS = [
    ("gaussian", (-1.5, -1.2), (0.3, 1.4), 0.15, 40),
    ("funnel", (0.5, 0.5), (0.3, -1.0), 0.1, 12),
    ("hills", (-1.2, 0.4), (1.9, 0.2), 0.2, 15),
]
PLANTED_IN_PATHS = {
    "r + step / 2 * gradient[d]": "r + step * gradient[d]",
    "r + step / 2 * next.gradient[d]": "r",
    "at + step * half[d]": "at + step * momentum[d]",
    "(u * u + v * v) / 2 - logDensity": "(u * u + v * v) / 2 + logDensity",
}


@pytest.mark.slow
def test_paths_and_energies_are_those_of_python_and_every_planted_error_is_noticed():
    source = (FOLDER / "leapfrog.js").read_text("utf-8")
    assert all(source.count(old) == 1 for old in PLANTED_IN_PATHS)
    sources = [source, *(source.replace(old, new) for old, new in PLANTED_IN_PATHS.items())]
    calls = [
        f"hmc.path({densities(kind)[0]}, {list(at)}, {list(push)}, {step}, {steps})"
        for kind, at, push, step, steps in PATHS
    ]
    found = browsed(
        f"""return {json.dumps(sources)}.map(text => new Function(
          text + "; return [{", ".join(calls)}]")()).map(all => all.map(({{phases, energies}}) =>
          phases.map((each, at) => [...each.position, ...each.momentum, energies[at]])));""",
        "samplers.html",
    )
    metric, wanted = DiagonalMetric(np.ones(2)), []
    for kind, at, push, step, steps in PATHS:
        target, rows = densities(kind)[1], []
        start = np.array([at])
        phase = Phase(start, np.array([push]), *target(start))
        for _ in range(steps + 1):
            rows.append([*phase.position[0], *phase.momentum[0], *hamiltonian(metric, phase)])
            phase = leapfrog(target, metric, phase, step)
        wanted.append(np.array(rows))
    far = [
        max(np.max(np.abs(np.array(f, float) - w)) for f, w in zip(each, wanted, strict=True))
        for each in found
    ]
    assert far[0] < 1e-10  # a path spreads what rounding does differently
    assert min(far[1:]) > 1e-3


def test_the_points_are_those_of_the_first_band():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    points = np.hstack([x, x**2 + 0.3 * rng.standard_normal((100, 1))])
    rows = re.findall(r"\[(-?[\d.]+), (-?[\d.]+)\]", (FOLDER / "data.js").read_text("utf-8"))
    np.testing.assert_allclose(np.array(rows, float), points, atol=5.1e-4)


def test_a_link_to_a_lesson_leads_to_one_and_every_lesson_has_its_entry():
    known, tags = {}, set()
    for page, script in (("index", "lessons.js"), ("samplers", "samplers.js")):
        text = (FOLDER / script).read_text("utf-8").split("const PRESETS = {")[1]
        known[page] = re.findall(r"^  (\w+): \{$", text.split("\n};")[0], re.MULTILINE)
        tags |= set(re.findall(r'\btag: "(\w+)"', text))
    assert len(known["index"]) > 10
    assert len(known["samplers"]) > 5
    assert {tag.upper() for tag in tags} <= set(DEFINED)
    for path in (*ROOT.glob("*.md"), *ROOT.glob("[de]*/**/*.md"), *ROOT.glob("site/**/*.md")):
        linked = re.findall(r"playground/(\w+)\.html#preset=(\w+)", path.read_text("utf-8"))
        assert not [name for page, name in linked if name not in known[page]], path


def settings(page, addresses, expression="settings"):
    """Return what `expression` is after each address, or the error; by node, where it is there."""
    program = shutil.which("node")
    if not program:
        pytest.skip("node is not installed")
    scripts = re.findall(r'<script src="(\w+\.js)">', (FOLDER / page).read_text("utf-8"))
    asked = json.dumps([[str(FOLDER / name) for name in scripts], addresses, expression])
    command = [program, str(Path(__file__).with_name("without_browser.js")), asked]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(("page", "plain"), [("index.html", "band"), ("samplers.html", "ball")])
def test_an_address_that_means_nothing_opens_the_first_lesson(page, plain):
    strange = ["#preset=%", "#preset=constructor", "?preset=__proto__",
               "#data=constructor", "#mistake=toString&prior=",
               "#rows=Infinity&step=%"]  # fmt: skip
    first, *found = settings(page, [f"#preset={plain}", *strange])
    assert dict(zip(strange, found, strict=True)) == dict.fromkeys(strange, first)


def test_an_address_says_the_lesson_and_what_is_set_besides():
    found = settings("index.html", ["#preset=gap&prior=2&mistake=k18", "?hidden=5#preset=gap&bare"])
    assert [found[0][name] for name in ("preset", "data", "prior")] == ["gap", "gap", 2]
    assert found[0]["mistake"] == "k18"
    assert found[1]["hidden"] == 5


IN_VAIN = {  # what an address asks for, and what the page says of it
    "index.html": {
        "#preset=band&prior=2&rho=-1.25&eta=1e-3&data=gap&mistake=k18": "",
        "#hidden=200": "hidden units: 200 is none of its values; it is 50.",
        "#noise=-1": "noise: -1 is none of its values; it is 0.1.",
        "#eta=NaN": "learning rate: NaN is none of its values; it is 0.002.",
        "#rows=Infinity": "rows a step: Infinity is none of its values; it is 10.",
        "#hidden=%20": "it is 20.",
        "#samples=1e400": "it is 1.",
        f"#prior={10**300}": f"1{'0' * 29} is none of its values; it is 10.",
        "#data=<b>": "data: <b> is not known.",
        "#mistake=constructor": "mistake: constructor is not known.",
        "#preset=gone": "No lesson is called gone; this is the first.",
    },
    "samplers.html": {
        "#preset=funnel&step=0.3": "",
        "#step=-5": "step size ε: -5 is none of its values; it is 0.02.",
        "#preset=1": "No lesson is called 1; this is the first.",
    },
}


@pytest.mark.parametrize("page", IN_VAIN)
def test_what_an_address_asks_for_in_vain_is_said(page):
    found = settings(page, list(IN_VAIN[page]), "notice")
    for notice, said in zip(found, IN_VAIN[page].values(), strict=True):
        assert said in notice
        assert bool(said) == bool(notice)


def test_on_flat_land_no_chain_runs_and_other_land_begins_another():
    flat, run, painted, moved = settings(
        "samplers.html",
        [""],
        """(() => {
          const said = () => document.getElementById("said").textContent.replace(/\\s+/g, " ");
          for (let each = 0; each < 9; each++) { go(); frame(); }
          const before = draws.length;
          paint([0, 0]);
          const after = draws.length;
          flatten(); changed(); go(); frame();
          return [said(), draws.length, [before, after], running];
        })()""",
    )[0]
    assert "no integral" in flat
    assert "accepted" not in flat
    assert run == 0
    assert painted[0] > painted[1] == 0
    assert moved is False


def test_after_steps_without_bound_each_way_on_begins_again():
    restarted, eta, added, label = settings(
        "index.html",
        ["#preset=away&noise=0.1"],
        """(() => {
          const lose = () => { settings.eta = 0.01; start(); until = 300; train(1e6); };
          performance.now = () => 0;
          lose(); const wasLost = lost; go();
          const restarted = [wasLost, lost, epochs], eta = settings.eta;
          stop(); held = true; lose(); toggle([-4.4, 13]);
          const added = [lost, epochs, points.length];
          lose(); stop();
          return [restarted, eta, added, document.getElementById("go").textContent];
        })()""",
    )[0]
    assert restarted == [True, False, 0]
    assert eta == 0.005
    assert added == [False, 0, 101]
    assert label == "Start again at rate 0.005"


def test_points_beside_the_axes_are_not_added_and_axes_of_no_range_have_no_ticks():
    (found,) = settings(
        "index.html",
        [""],
        """(() => {
          held = true;
          const counts = [];
          for (const at of [[0, 1e9], [9, 0], [NaN, 0], [-4.4, 13]]) {
            toggle(at);
            counts.push(points.length);
          }
          return [counts, ticks(0, 1, 3, true), ticks(1, 1, 3), ticks(-Infinity, Infinity, 3)];
        })()""",
    )
    assert found == [[100, 100, 100, 101], [], [], []]


def test_the_playground_asks_nothing_of_a_network():
    for path in FOLDER.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"https?://|fetch\(|XMLHttpRequest|\bimport\b|@font-face", text), path


LOOK = """run("stop()");
  const all = (what, within = it.document) => [...within.querySelectorAll(what)];
  const seen = all("main *, .panels *").filter(each => each.checkVisibility());
  const right = seen.filter(each => !each.closest("svg"))
    .map(each => Math.floor(each.getBoundingClientRect().right));
  const named = each => each.ariaLabel || each.textContent.trim() || each.labels?.length;
  return {
    wide: Math.max(it.document.documentElement.scrollWidth, ...right), said,
    over: it.document.documentElement.scrollHeight - it.innerHeight,
    shown: all("canvas").filter(each => each.checkVisibility()).length,
    cut: run(`(plot => {
      const high = plot.pen.measureText(plot.nameOfY()).width;
      const broad = plot.pen.measureText(plot.xName).width;
      return high > 2 * (plot.top + plot.up / 2) || broad > plot.left + plot.across;
    })(typeof fit === "undefined" ? plane : fit)`),
    nameless: all("canvas, button, input, select").filter(each => !named(each))
      .map(each => each.id),
    pressed: all(".presets [aria-pressed=true]").map(each => each.dataset.preset),
  };"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [PHONE, 1440])
@pytest.mark.parametrize(("page", "preset"), [("index.html", "k18"), ("samplers.html", "funnel")])
def test_a_page_fits_its_screen_whole_and_bare_and_complains_of_nothing(page, preset, width):
    whole = browsed(LOOK, page, f"preset={preset}", width)
    framed = browsed(LOOK, page, f"preset={preset}&bare", width, 528 if width == PHONE else 432)
    low = browsed(LOOK, page, f"preset={preset}&bare", width, 360)
    assert not low["cut"]
    for found in (whole, framed):
        assert found["wide"] <= width
        assert not found["cut"]
        assert (found["said"], found["nameless"], found["pressed"]) == ([], [], [preset])
    assert (whole["shown"], framed["shown"]) == (4 if page == "index.html" else 3, 1)
    assert framed["over"] == 0


@pytest.mark.slow
def test_keys_and_clicks_change_the_points_and_the_address_says_what_is_set():
    found = browsed(
        """run("stop(); held = true");
        const key = (id, key) => $(id).dispatchEvent(
          new it.KeyboardEvent("keydown", {key, cancelable: true}));
        const counts = [], count = () => counts.push(run("points.length"));
        count();
        key("fit", "ArrowUp"); key("fit", "ArrowUp"); key("fit", "Enter"); count();
        key("fit", "Enter"); count();
        const {left, top} = $("fit").getBoundingClientRect();
        $("fit").dispatchEvent(new it.MouseEvent("click", {clientX: left + 90, clientY: top + 30}));
        count();
        const before = run("chosen[0]");
        key("weights", "ArrowRight");
        $("prior").value = 0;
        $("prior").dispatchEvent(new it.Event("input"));
        const moved = run("chosen[0]") - before;
        return [counts, moved, it.location.hash, run("settings.prior"), said];"""
    )
    assert found == [[100, 101, 100, 101], 1, "#preset=band&prior=0.05", 0.05, []]


@pytest.mark.slow
def test_a_finger_draws_hills_and_moves_the_start_and_the_push_and_so_do_keys():
    found = browsed(
        """const {left, top} = $("plane").getBoundingClientRect();
        const at = ([x, y]) => ({pointerId: 1, clientX: left + run("plane").X(x),
                                 clientY: top + run("plane").Y(y)});
        const touch = (name, place) => $("plane").dispatchEvent(
          new it.PointerEvent(`pointer${name}`, at(place)));
        run("plane.canvas.setPointerCapture = () => 0");
        const key = (key, shiftKey) => $("plane").dispatchEvent(
          new it.KeyboardEvent("keydown", {key, shiftKey, cancelable: true}));
        const state = () => run("[...settings.position, ...settings.momentum]");
        touch("down", run("settings.position")); touch("move", [0.5, 1]); touch("up", [0.5, 1]);
        touch("down", [1.1, 0.4]); touch("up", [1.1, 0.4]);
        const dragged = state();
        key("ArrowLeft", false); key("ArrowUp", true);
        const keyed = state();
        $("flat").click();
        const flat = run("target([1, 1])[0]");
        for (const place of [[0, 0], [0.5, 0], [0.55, 0], [1, 0.5]]) touch("down", place);
        touch("up", [1, 0.5]);
        const hill = run("target([0, 0])[0]") > -1;
        return [dragged, keyed, flat, run("centres.length"), hill, said];""",
        "samplers.html",
    )
    assert np.allclose(found[0], [0.5, 1, 1, -1])
    assert np.allclose(found[1], [0.4, 1, 1, -0.9])
    assert found[2:] == [0, 3, True, []]


def lessons(*addresses):
    """Return what the page says of each address when its training has stopped."""
    return browsed(
        f"""run("stop()");
        return {json.dumps(addresses)}.map(address => {{
          it.history.replaceState(null, "", "#" + address);
          run("load(asked()); while (epochs < until && !lost) train(200); measure(); draw();");
          const spread = x => run(`predicted(GRID, 100).epistemic`)[45 + 10 * x];
          const inside = $("said").textContent.match(/(\\d+) of/)?.[1];
          return {{
            ...run("past.rows.at(-1)"), lost: run("lost"), inside: +inside,
            sigma: run("Math.max(...theta.subarray(theta.length / 2).map(bbb.softplus))"),
            spread: [0, 1.5, 4].map(spread),
          }};
        }});"""
    )


@pytest.mark.slow
def test_every_lesson_shows_what_it_says():
    names = ("band", "report", "gap", "narrow", "share", "k18", "twice", "one", "cold", "units",
             "units&hidden=2", "units&hidden=50", "away")  # fmt: skip
    found = dict(zip(names, lessons(*(f"preset={name}" for name in names)), strict=True))
    band = found["band"]
    assert band["spread"][2] > 2 * band["spread"][1]
    assert found["report"]["sigma"] < 0.015
    assert found["report"]["spread"][2] < band["spread"][2] / 3
    assert found["gap"]["spread"][0] < 0.05
    assert found["narrow"]["inside"] <= 80
    assert found["narrow"]["f"] > 2.5 * band["f"]
    assert found["share"]["spread"][0] > 5 * band["spread"][0]
    np.testing.assert_allclose(found["k18"]["f"] - found["k18"]["printed"], 122 * np.log(2.5))
    assert found["twice"]["inside"] > band["inside"]
    assert found["one"]["inside"] == 100
    assert found["cold"]["spread"][2] < 0.6 * band["spread"][2]
    assert 2 * found["units&hidden=2"]["f"] < found["units&hidden=50"]["f"] < found["units"]["f"]
    assert [name for name in names if found[name]["lost"]] == ["away"]
