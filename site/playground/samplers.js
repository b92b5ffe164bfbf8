// The page of the samplers: a posterior under the finger. The mathematics is in leapfrog.js.
"use strict";

const $ = id => document.getElementById(id);
const TARGETS = {
  round: hmc.gaussian(1, 1, 0),
  tilted: hmc.gaussian(1, 1, 0.9),
  funnel: hmc.funnel(1),
};
const turn = Array.from({length: 24}, (_, at) => at * Math.PI / 12);
const HILLS = {  // round hills: where they are, and their width
  two: [[[-1.7, 0], [1.7, 0]], 0.5],
  ring: [turn.map(angle => [1.8 * Math.cos(angle), 1.8 * Math.sin(angle)]), 0.35],
  own: [[], 0.35],
};
const MOST = 3000;  // draws
const MOST_HILLS = 150;
const START = {
  target: "tilted", step: 0.1, steps: 15, position: [-1.5, -1.5], momentum: [1.5, 0.3],
};
const PRESETS = {
  ball: {
    title: "A ball rolls", tag: "m7",
    text: `What it loses in height it gains in speed. H, the sum, is kept but for the error of the
      steps: that error is all that may be rejected.`,
  },
  turn: {
    title: "A U-turn", steps: 60, step: 0.15, position: [-1.5, -1.2], momentum: [0.3, 1.4],
    tag: "m9",
    text: `The path leaves its start, and comes back. From where momentum times the way from the
      start is negative, going on is wasted: NUTS stops there.`,
  },
  unstable: {
    title: "Steps too large", step: 0.7, steps: 40, momentum: [1, -0.5], tag: "m8",
    text: `Across the ridge the standard deviation is √0.1 = 0.316. A step above twice that, 0.632,
      is not stable: make it smaller, and see the path come back to its hill.`,
  },
  period: {
    title: "A path that goes nowhere", target: "round", step: 1, steps: 6, position: [-1.5, 0],
    momentum: [0.6, 1.2], tag: "m7",
    text: `On a round hill six steps of 1 are a full turn. The ball ends where it began: every
      proposal is accepted, and nothing moves. So a chain takes a random number of steps.`,
  },
  funnel: {
    title: "A funnel", target: "funnel", step: 0.3, steps: 20, position: [0.2, 0.3],
    momentum: [0, -3], tag: "m10",
    text: `However small the step, the neck is somewhere narrower. Paths that go down diverge, and
      the chain stays out of it. No draw says so; the count of divergences does.`,
  },
  two: {
    title: "Two hills", target: "two", step: 0.2, steps: 15, position: [-1.7, 0],
    momentum: [0.4, 0.9], tag: "m5",
    text: `The chain stays for hundreds of draws on one hill. They look fine, and do not know of the
      other. Start a second chain there.`,
  },
  ring: {
    title: "A ring, drawn", target: "ring", step: 0.15, steps: 25, position: [-1.8, 0],
    momentum: [0, 1.5], tag: "m7",
    text: `Any land will do: press Flat land, and draw one with the finger.`,
  },
};
const SLIDERS = [
  {name: "step", title: "step size ε",
   choices: [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 1, 1.2, 1.5, 2]},
  {name: "steps", title: "steps of a path",
   choices: [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 60, 80, 120]},
];
const plane = new Plot($("plane"), {
  x: [-4, 4], y: [-3, 3], xName: "first weight (dimensionless)",
  yName: "second weight (dimensionless)", yShort: "second weight"});
const energy = new Plot($("energy"), {xName: "steps", yName: "nats", left: 54});
const trace = new Plot($("trace"), {y: [-4, 4], xName: "draws", yName: "first weight"});
const sliders = {};

let settings, target, centres, found, chain, draws, counts, random, land;
let running = false, brush = false, held = null;
let rolled = null;  // the step at which the ball is, while it rolls
let next = 0;       // the frame that is asked for: there is one at a time

const isFlat = () => settings.target === "own" && !centres.length;

function useTarget() {
  const {target: name} = settings, width = HILLS[name]?.[1];
  if (name in TARGETS) target = TARGETS[name];
  else target = centres.length ? hmc.hills(centres, width) : () => [0, 0, 0];
  land = null;
}

function forget() {
  draws = [];
  chain = settings.position;
  counts = {accepted: 0, divergent: 0, where: []};
}

// The density as an image, darker where it is higher, in steps of one nat down to six.
function drawLand() {
  const size = [plane.across, plane.up].map(Math.round), shade = colour("hill"), cell = 3;
  if (land?.shade !== shade || land.size.join() !== size.join()) {
    const image = document.createElement("canvas"), pen = image.getContext("2d"), heights = [];
    [image.width, image.height] = size.map(each => Math.ceil(each / cell));
    const place = (share, [low, high]) => low + share * (high - low);
    for (let row = 0; row < image.height; row++) {
      const y = place(1 - (row + 0.5) / image.height, plane.y);
      for (let column = 0; column < image.width; column++) {
        heights.push(target([place((column + 0.5) / image.width, plane.x), y])[0]);
      }
    }
    const flat = isFlat();
    const top = heights.reduce((most, each) => Math.max(most, each), -Infinity);
    heights.forEach((each, at) => {
      const level = flat ? 0 : Math.max(0, 6 - Math.floor(top - each));
      pen.fillStyle = `rgb(${shade} / ${level * 9}%)`;
      if (level) pen.fillRect(at % image.width, Math.floor(at / image.width), 1, 1);
    });
    land = {image, shade, size};
  }
  plane.pen.drawImage(land.image, plane.left, plane.top, ...size);
}

const tip = () => settings.position.map((at, d) => at + 0.6 * settings.momentum[d]);

function drawPush() {
  const [x, y] = settings.position, [u, v] = tip(), {pen} = plane, ink = colour("vermillion");
  const angle = Math.atan2(plane.Y(v) - plane.Y(y), plane.X(u) - plane.X(x));
  plane.line([x, u], [y, v], ink, 3);
  pen.fillStyle = ink;
  pen.beginPath();
  for (const [aside, far] of [[0, 4], [2.5, 13], [-2.5, 13]]) {
    const way = angle + aside;
    pen.lineTo(plane.X(u) + far * Math.cos(way), plane.Y(v) + far * Math.sin(way));
  }
  pen.fill();
  plane.dot(x, y, ink, 8);
}

function drawPath() {
  const last = Math.min(rolled ?? Infinity, found.phases.length - 1);
  const places = found.phases.slice(0, last + 1).map(each => each.position);
  const cut = found.turned < 0 ? places.length : found.turned + 1;
  const line = (part, ink, dash) =>
    plane.line(part.map(([x]) => x), part.map(([, y]) => y), colour(ink), 1.8, dash);
  line(places.slice(0, cut), "ink", []);
  if (cut < places.length) line(places.slice(cut - 1), "green", [6, 4]);
  places.forEach(([x, y], at) => plane.dot(x, y, colour(at < cut ? "ink" : "green"), 2.5));
  if (rolled !== null) plane.dot(...places.at(-1), colour("vermillion"), 7);
  if (last === found.diverged) plane.cross(...places.at(-2), colour("vermillion"), 8);
}

function drawPlane() {
  plane.begin().inside(() => {
    drawLand();
    plane.dots(draws, colour("purple"), 2.5);
    for (const [x, y] of counts.where) plane.cross(x, y, colour("vermillion"), 4);
    drawPath();
    drawPush();
  });
}

function drawEnergy() {
  const fine = found.energies.flatMap((each, at) => Number.isFinite(each) ? [at] : []);
  const h = fine.map(at => found.energies[at]), u = fine.map(at => -found.phases[at].logDensity);
  const k = h.map((each, at) => each - u[at]), all = [...h, ...u, ...k];
  const floor = Math.min(0, ...all.slice(h.length));
  const top = Math.min(Math.max(...all), h[0] + 20 + Math.abs(h[0]));
  energy.x = [0, found.phases.length - 1];
  energy.y = [floor, top + 0.08 * (top - floor)];
  energy.begin().inside(() => {
    energy.line(fine, u, colour("blue"), 2, [7, 4]);
    energy.line(fine, k, colour("orange"), 2, [2, 3]);
    energy.line(fine, h, colour("ink"), 2.5);
    if (rolled < h.length && rolled !== null) {
      energy.dot(rolled, h[rolled], colour("vermillion"), 6);
    }
  });
}

function drawTrace() {
  trace.x = [0, Math.max(200, draws.length)];
  const first = draws.map(([x]) => x);
  trace.begin().inside(() => trace.line(first.keys(), first, colour("purple"), 1.2));
}

function tell() {
  const change = found.energies.at(-1) - found.energies[0], diverged = found.diverged >= 0;
  const chance = shown(Math.min(1, Math.exp(-change)), 2);
  const path = diverged
    ? `The path diverges at step ${found.diverged}: its energy is off by more than 1000 nats.`
    : `After ${found.phases.length - 1} steps H is off by ${shown(change, 2)} nats; accepted with
       probability ${chance}.`;
  const turned = found.turned < 0 || diverged ? "" : ` It turns back at step ${found.turned}.`;
  if (isFlat()) {
    $("said").textContent = `On flat land nothing turns the ball. There is no chain here either: a
      density that is the same everywhere has no integral, so it is no distribution, and there is
      nothing to draw from. Draw a hill first.`;
    return;
  }
  const share = Math.round(100 * counts.accepted / draws.length);
  const chained = draws.length
    ? ` Chain: ${draws.length} draws, ${share} % accepted, ${counts.divergent} diverged.` : "";
  $("said").textContent = path + turned + chained;
}

function draw() {
  drawPlane();
  tell();
  if (document.body.classList.contains("bare")) return;
  drawEnergy();
  drawTrace();
}

// Follow the ball anew, after anything has changed.
function changed() {
  const {position, momentum, step, steps} = settings;
  rolled = null;
  found = hmc.path(target, position, momentum, step, steps);
  draw();
}

function frame() {
  if (!running) return;
  for (let each = 0; each < 3 && draws.length < MOST; each++) {
    const moved = hmc.move(target, chain, settings.step, settings.steps, random);
    chain = moved.position;
    draws.push(chain);
    counts.accepted += moved.accepted;
    if (moved.diverged >= 0) {
      counts.divergent++;
      counts.where = [...counts.where, moved.phases[moved.diverged - 1].position].slice(-100);
    }
  }
  if (draws.length >= MOST) stop();
  draw();
  next = requestAnimationFrame(frame);
}

function go() {
  if (isFlat()) { tell(); return; }
  if (draws.length >= MOST) forget();
  running = true;
  rolled = null;
  $("go").textContent = "Pause";
  cancelAnimationFrame(next);
  next = requestAnimationFrame(frame);
}

function stop() {
  running = false;
  $("go").textContent = "Run a chain";
}

// Let the ball roll along the path, a step every four frames.
function roll() {
  let ticks = 0;
  stop();
  rolled = 0;
  const on = () => {
    if (rolled === null) return;
    rolled = Math.floor(++ticks / 4);
    if (rolled >= found.phases.length - 1) rolled = null;
    draw();
    next = requestAnimationFrame(on);
  };
  cancelAnimationFrame(next);
  next = requestAnimationFrame(on);
}

// Put a hill where the finger is; the first one on land that was not drawn begins a new one.
function paint([x, y]) {
  if (settings.target in TARGETS) flatten();
  settings.target = "own";
  const far = centres.every(([a, b]) => Math.hypot(a - x, b - y) > 0.2);
  if (far && centres.length < MOST_HILLS) {
    centres.push([x, y]);
    forget();  // its draws were those of other land
  }
  useTarget();
  changed();
}

function flatten() {
  settings.target = "own";
  centres = [];
  stop();
  useTarget();
  forget();
}

function setBrush(on) {
  brush = on;
  $("brush").setAttribute("aria-pressed", on);
}

// Move the start, and the chain with it while it rests.
function place(at) {
  const within = (value, [low, high]) => Math.max(low, Math.min(high, value));
  settings.position = [within(at[0], plane.x), within(at[1], plane.y)];
  if (!running) chain = settings.position;
}

function drag(at) {
  if (held === "brush") {
    if (plane.holds(at)) paint(at);
    return;
  }
  if (held === "start") place(at);
  else settings.momentum = at.map((each, d) => (each - settings.position[d]) / 0.6);
  changed();
}

plane.canvas.addEventListener("pointerdown", event => {
  const at = plane.at(event);
  if (brush && !plane.holds(at)) return;
  const apart = ([x, y]) => Math.hypot(plane.X(x) - plane.X(at[0]), plane.Y(y) - plane.Y(at[1]));
  const start = apart(settings.position);
  if (brush) held = "brush";
  else held = start < 18 && start < apart(tip()) ? "start" : "push";
  plane.canvas.setPointerCapture(event.pointerId);
  drag(at);
});
plane.canvas.addEventListener("pointermove", event => { if (held) drag(plane.at(event)); });
for (const name of ["pointerup", "pointercancel"]) {
  plane.canvas.addEventListener(name, () => { held = null; });
}
plane.canvas.addEventListener("keydown", event => {
  const way = arrowOf(event), by = each => (of, d) => of + each * way[d];
  if (way && event.shiftKey) settings.momentum = settings.momentum.map(by(0.1));
  else if (way) place(settings.position.map(by(0.1)));
  else if (["Enter", " "].includes(event.key) && brush) paint(settings.position);
  else return;
  event.preventDefault();
  changed();
});

function load({preset, bare, ...others}) {
  const notes = [];
  if (!Object.hasOwn(PRESETS, preset)) {
    if (preset) notes.push(`No lesson is called ${preset.slice(0, 30)}; this is the first.`);
    preset = "ball";
  }
  settings = {...START};
  for (const name of Object.keys(START)) settings[name] = PRESETS[preset][name] ?? START[name];
  for (const {name, title} of SLIDERS) {
    const wanted = Object.hasOwn(others, name) ? others[name] : undefined;
    settings[name] = setAsAsked(sliders[name], title, wanted, settings[name], notes);
  }
  centres = (HILLS[settings.target]?.[0] ?? []).slice();
  random = bbb.uniforms(3);
  setBrush(false);
  stop();
  useTarget();
  forget();
  present(PRESETS, preset, "samplers.html", bare === "true");
  tellNotes(notes);
  changed();
}

presets(PRESETS, preset => {
  load({preset});
  history.replaceState(null, "", `#preset=${preset}`);
});
for (const options of SLIDERS) {
  const {name} = options;
  sliders[name] = slider($("sliders"), {
    ...options, value: START[name], changed: value => {
      settings[name] = value;
      tellNotes([]);
      forget();  // what share is accepted is said of one step size
      changed();
    }});
}
$("go").addEventListener("click", () => running ? stop() : go());
$("roll").addEventListener("click", roll);
$("forget").addEventListener("click", () => { forget(); draw(); });
$("brush").addEventListener("click", () => setBrush(!brush));
$("flat").addEventListener("click", () => { flatten(); setBrush(true); changed(); });
window.addEventListener("hashchange", () => load(asked()));
onLook(draw);
load(asked());
