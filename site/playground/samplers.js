// The page of the samplers: a posterior under the finger. The mathematics is in leapfrog.js.
"use strict";

const $ = id => document.getElementById(id);
const TARGETS = {
  round: hmc.gaussian(1, 1, 0),
  tilted: hmc.gaussian(1, 1, 0.9),
  funnel: hmc.funnel(1),
};
const RING = Array.from({length: 24}, (_, at) => [1.8 * Math.cos(at * Math.PI / 12), 1.8 * Math.sin(at * Math.PI / 12)]);
const START = {target: "tilted", step: 0.1, steps: 15, position: [-1.5, -1.5], momentum: [1.5, 0.3], width: 0.35};
const PRESETS = {
  ball: {title: "A ball rolls", tag: "m7",
    text: "What it loses in height it gains in speed. H, the sum, is kept but for the error of the steps: that error is all that may be rejected."},
  turn: {title: "A U-turn", steps: 60, step: 0.15, position: [-1.5, -1.2], momentum: [0.3, 1.4], tag: "m9",
    text: "The path leaves its start, and comes back. Where momentum times the way from the start becomes negative, going on is wasted: NUTS stops there."},
  unstable: {title: "Steps too large", step: 0.7, steps: 40, momentum: [1, -0.5], tag: "m8",
    text: "Across the ridge the standard deviation is √0.1 = 0.316. A step above twice that, 0.632, is not stable: make it smaller, and see the path come back to its hill."},
  period: {title: "A path that goes nowhere", target: "round", step: 1, steps: 6, position: [-1.5, 0], momentum: [0.6, 1.2], tag: "m7",
    text: "On a round hill six steps of 1 are a full turn: the ball ends where it began, every proposal is accepted, and nothing moves. So the number of steps is random."},
  funnel: {title: "A funnel", target: "funnel", step: 0.3, steps: 20, position: [0.2, 0.3], momentum: [0, -3], tag: "m10",
    text: "However small the step, the neck is somewhere narrower. Paths that go down diverge, and the chain stays out of it. No draw says so; the count of divergences does."},
  two: {title: "Two hills", target: "two", step: 0.2, steps: 15, position: [-1.7, 0], momentum: [0.4, 0.9], tag: "m5",
    text: "The chain stays for hundreds of draws on one hill. They look fine, and do not know of the other. Start a second chain there."},
  ring: {title: "A ring, drawn", target: "ring", step: 0.15, steps: 25, position: [-1.8, 0], momentum: [0, 1.5], tag: "m7",
    text: "Any land will do: press Flat land, then Draw hills, and draw one with the finger."},
};
const SLIDERS = [
  {name: "step", title: "step size ε", choices: [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.1]},
  {name: "steps", title: "steps of a path", choices: [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 60, 80, 120]},
];
const plane = new Plot($("plane"), {x: [-4, 4], y: [-3, 3], xName: "first weight (dimensionless)", yName: "second weight (dimensionless)"});
const energy = new Plot($("energy"), {x: [0, 1], y: [0, 1], xName: "steps", yName: "nats", left: 54});
const trace = new Plot($("trace"), {x: [0, 200], y: [-4, 4], xName: "draws", yName: "first weight"});
const sliders = {};

let settings, target, centres, found, chain, draws, counts, random, running, brush, rolled, land;

function useTarget() {
  if (settings.target === "ring") centres = RING.slice();
  else if (settings.target === "two") centres = [[-1.7, 0], [1.7, 0]];
  else if (settings.target !== "own") centres = [];
  if (settings.target === "two") settings.width = 0.5;
  land = null;
  target = centres.length ? hmc.hills(centres, settings.width) : TARGETS[settings.target] ?? (() => [0, 0, 0]);
}

function forget() {
  draws = [];
  chain = settings.position;
  counts = {accepted: 0, divergent: 0};
}

function follow() {
  found = hmc.path(target, settings.position, settings.momentum, settings.step, settings.steps);
}

// The density as an image, darker where it is higher, in steps of one nat down to six.
function drawLand() {
  const size = [plane.width - plane.left - plane.right, plane.height - plane.top - plane.bottom].map(Math.round);
  const shade = colour("hill");
  if (!land || land.shade !== shade || land.size.join() !== size.join()) {
    const image = document.createElement("canvas"), cell = 3;
    image.width = Math.ceil(size[0] / cell);
    image.height = Math.ceil(size[1] / cell);
    const pen = image.getContext("2d"), heights = [];
    for (let row = 0; row < image.height; row++) {
      for (let column = 0; column < image.width; column++) {
        const x = plane.x[0] + (column + 0.5) / image.width * (plane.x[1] - plane.x[0]);
        const y = plane.y[1] - (row + 0.5) / image.height * (plane.y[1] - plane.y[0]);
        heights.push(target([x, y])[0]);
      }
    }
    const top = heights.reduce((most, each) => Math.max(most, each), -Infinity);
    heights.forEach((each, at) => {
      const level = Math.max(0, 6 - Math.floor(top - each));
      if (!level || top === 0 && !centres.length && settings.target === "own") return;
      pen.fillStyle = `rgb(${shade} / ${level * 9}%)`;
      pen.fillRect(at % image.width, Math.floor(at / image.width), 1, 1);
    });
    land = {image, shade, size};
  }
  plane.pen.drawImage(land.image, plane.left, plane.top, ...size);
}

function drawPlane() {
  plane.begin().inside(() => {
    drawLand();
    for (const [x, y] of draws) plane.dot(x, y, colour("purple"), 2.5);
    for (const [x, y] of counts.where ?? []) plane.cross(x, y, colour("vermillion"), 4);
    const last = rolled === null ? found.phases.length - 1 : Math.min(rolled, found.phases.length - 1);
    const ways = found.phases.slice(0, last + 1).map(each => each.position);
    const cut = found.turned < 0 ? ways.length : found.turned + 1;
    const line = (part, style, dash) => plane.line(part.map(([x]) => x), part.map(([, y]) => y), style, 1.8, dash);
    line(ways.slice(0, cut), colour("ink"), []);
    if (cut < ways.length) line(ways.slice(cut - 1), colour("green"), [6, 4]);
    ways.forEach(([x, y], at) => plane.dot(x, y, colour(at < cut ? "ink" : "green"), 2.5));
    if (rolled !== null) plane.dot(...ways.at(-1), colour("vermillion"), 7);
    if (found.diverged >= 0 && last >= found.diverged) plane.cross(...ways.at(-2), colour("vermillion"), 8);
    const [x, y] = settings.position, [u, v] = tip();
    plane.line([x, u], [y, v], colour("vermillion"), 3);
    arrow(u, v, x, y);
    plane.dot(x, y, colour("vermillion"), 8);
  });
}

const tip = () => settings.position.map((at, d) => at + 0.6 * settings.momentum[d]);

function arrow(u, v, x, y) {
  const angle = Math.atan2(plane.Y(v) - plane.Y(y), plane.X(u) - plane.X(x)), {pen} = plane;
  pen.fillStyle = colour("vermillion");
  pen.beginPath();
  for (const [turn, far] of [[0, 4], [2.5, 13], [-2.5, 13]]) {
    pen.lineTo(plane.X(u) + far * Math.cos(angle + turn), plane.Y(v) + far * Math.sin(angle + turn));
  }
  pen.fill();
}

function drawEnergy() {
  const finite = found.energies.map((each, at) => Number.isFinite(each) ? at : -1).filter(at => at >= 0);
  const h = finite.map(at => found.energies[at]), u = finite.map(at => -found.phases[at].logDensity);
  const k = h.map((each, at) => each - u[at]);
  const floor = Math.min(...u, ...k, 0), top = Math.min(Math.max(...h, ...u, ...k), h[0] + 20 + Math.abs(h[0]));
  energy.x = [0, Math.max(1, found.phases.length - 1)];
  energy.y = [floor, top + 0.08 * (top - floor)];
  energy.begin().inside(() => {
    energy.line(finite, u, colour("blue"), 2, [7, 4]);
    energy.line(finite, k, colour("orange"), 2, [2, 3]);
    energy.line(finite, h, colour("ink"), 2.5);
    if (rolled !== null && rolled < h.length) energy.dot(rolled, h[rolled], colour("vermillion"), 6);
  });
}

function drawTrace() {
  trace.x = [0, Math.max(200, draws.length)];
  trace.begin().inside(() => trace.line(draws.map((_, at) => at), draws.map(([x]) => x), colour("purple"), 1.2));
}

function tell() {
  const change = found.energies.at(-1) - found.energies[0], diverged = found.diverged >= 0;
  const path = diverged
    ? `The path diverges at step ${found.diverged}: its energy is off by more than 1000 nats.`
    : `After ${found.phases.length - 1} steps H is off by ${shown(change, 2)} nats; accepted with probability ${shown(Math.min(1, Math.exp(-change)), 2)}.`;
  const turned = found.turned < 0 || diverged ? "" : ` It turns back at step ${found.turned}.`;
  const chained = draws.length
    ? ` Chain: ${draws.length} draws, ${Math.round(100 * counts.accepted / draws.length)} % accepted, ${counts.divergent} diverged.` : "";
  $("said").textContent = path + turned + chained;
}

function draw() {
  drawPlane();
  tell();
  if (document.body.classList.contains("bare")) return;
  drawEnergy();
  drawTrace();
}

function changed() {
  rolled = null;
  follow();
  draw();
}

function frame() {
  if (!running) return;
  for (let each = 0; each < 3; each++) {
    const moved = hmc.move(target, chain, settings.step, settings.steps, random);
    chain = moved.position;
    draws.push(chain);
    counts.accepted += moved.accepted;
    if (moved.diverged >= 0) {
      counts.divergent++;
      counts.where = [...(counts.where ?? []), moved.phases[moved.diverged - 1].position].slice(-100);
    }
  }
  if (draws.length >= 3000) stop();
  draw();
  requestAnimationFrame(frame);
}

function go() {
  if (draws.length >= 3000) forget();
  running = true;
  $("go").textContent = "Pause";
  requestAnimationFrame(frame);
}

function stop() {
  running = false;
  $("go").textContent = "Run a chain";
}

// Let the ball roll along the path, a step a few frames.
function roll() {
  stop();
  rolled = 0;
  let ticks = 0;
  const on = () => {
    if (rolled === null || running) return;
    rolled = Math.floor(++ticks / 4);
    draw();
    rolled < found.phases.length - 1 ? requestAnimationFrame(on) : rolled = null;
  };
  requestAnimationFrame(on);
}

function paint(point) {
  if (settings.target !== "own") { settings.target = "own"; if (!centres.length) forget(); }
  if (centres.every(([x, y]) => Math.hypot(x - point[0], y - point[1]) > 0.2) && centres.length < 150) centres.push(point);
  useTarget();
  changed();
}

function setBrush(on) {
  brush = on;
  $("brush").setAttribute("aria-pressed", on);
}

let held = null;
plane.canvas.addEventListener("pointerdown", event => {
  const at = plane.at(event), apart = ([x, y]) => Math.hypot(plane.X(x) - plane.X(at[0]), plane.Y(y) - plane.Y(at[1]));
  plane.canvas.setPointerCapture(event.pointerId);
  if (brush) { held = "brush"; paint(at); return; }
  held = apart(settings.position) < 18 && apart(tip()) > apart(settings.position) ? "start" : "push";
  drag(at);
});
plane.canvas.addEventListener("pointermove", event => {
  if (held === "brush") paint(plane.at(event));
  else if (held) drag(plane.at(event));
});
for (const name of ["pointerup", "pointercancel"]) plane.canvas.addEventListener(name, () => { held = null; });

function drag(at) {
  if (held === "start") place(at);
  else settings.momentum = at.map((each, d) => (each - settings.position[d]) / 0.6);
  changed();
}

function place(at) {
  settings.position = at.map((each, d) => Math.max(plane[d ? "y" : "x"][0], Math.min(plane[d ? "y" : "x"][1], each)));
  if (!running) chain = settings.position;
}

plane.canvas.addEventListener("keydown", event => {
  const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
  if (move) {
    if (event.shiftKey) settings.momentum = settings.momentum.map((each, d) => each + 0.1 * move[d]);
    else place(settings.position.map((each, d) => each + 0.1 * move[d]));
    changed();
  } else if ((event.key === "Enter" || event.key === " ") && brush) paint(settings.position.slice());
  else return;
  event.preventDefault();
});

function load({preset, bare, ...others}) {
  const known = preset in PRESETS ? preset : "ball", lesson = PRESETS[known];
  document.body.classList.toggle("bare", bare === "true" || bare === "");
  settings = {...START};
  for (const name of Object.keys(START)) if (name in lesson) settings[name] = lesson[name];
  for (const {name} of SLIDERS) settings[name] = sliders[name].set(Number.isFinite(+others[name]) ? +others[name] : settings[name]);
  settings.position = settings.position.slice();
  random = bbb.uniforms(3);
  setBrush(false);
  stop();
  rolled = null;
  useTarget();
  forget();
  $("caption").innerHTML = `<strong>${lesson.title}.</strong> ${lesson.text} <a class="book inline" href="../tags/${lesson.tag}.html" target="_top">${lesson.tag.toUpperCase()}</a>`;
  for (const button of $("presets").children) button.setAttribute("aria-pressed", button.dataset.preset === known);
  $("open").href = `samplers.html#preset=${known}`;
  changed();
}

for (const [name, {title}] of Object.entries(PRESETS)) {
  const button = document.createElement("button");
  button.textContent = title;
  button.dataset.preset = name;
  button.addEventListener("click", () => { load({preset: name}); window.history.replaceState(null, "", `#preset=${name}`); });
  $("presets").append(button);
}
for (const options of SLIDERS) {
  sliders[options.name] = slider($("sliders"), {...options, value: START[options.name], changed: value => { settings[options.name] = value; changed(); }});
}
$("go").addEventListener("click", () => running ? stop() : go());
$("roll").addEventListener("click", roll);
$("forget").addEventListener("click", () => { forget(); draw(); });
$("brush").addEventListener("click", () => setBrush(!brush));
$("flat").addEventListener("click", () => { settings.target = "own"; centres = []; settings.width = START.width; useTarget(); forget(); setBrush(true); changed(); });
window.addEventListener("hashchange", () => load(asked()));
onLook(() => draw());
load(asked());
