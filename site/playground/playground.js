// The page: points in, bands out. The mathematics is in bbb.js; planted mistakes are made here.
"use strict";

const $ = id => document.getElementById(id);
const GRID = Float64Array.from({length: 91}, (_, at) => -4.5 + 0.1 * at);

let settings, points, net, theta, random, epochs, past, chosen, running, lost, until, smooth;
let held = false;   // whether the reader has pressed Pause
let cursor = null;  // of the keyboard
let frames = 0;
let next = 0;       // the frame that is asked for: there is one at a time
const sliders = {}, kept = {};

// Noise that stays, so that what is drawn moves only as theta does.
function staying(name, count) {
  if (kept[name]?.length !== count) kept[name] = bbb.normals(bbb.uniforms(7), count);
  return kept[name];
}

function start() {
  const H = settings.hidden, unit = Math.min(2, H - 1);
  random = bbb.uniforms(1);
  net = [1, H, 1];
  theta = bbb.init(net, random, settings.rho);
  [epochs, lost, smooth, past] = [0, false, null, {every: 1, rows: []}];
  const P = bbb.size(net);
  if (!chosen || chosen.some(each => each >= P)) chosen = [2 * H + unit, unit, H + unit];
  measure();
  draw();
}

const columns = () => [0, 1].map(which => Float64Array.from(points, point => point[which]));

// Descend for some steps, whole epochs, but not so long that the picture halts.
function train(most) {
  const {prior, noise, eta, rows, samples, beta, mistake} = settings, [x, y] = columns();
  const share = (some, all) => beta * (mistake === "share" ? 1 : some / all);
  const began = performance.now(), S = samples * theta.length / 2;
  for (let steps = 0; steps < most && epochs < until && performance.now() - began < 14; epochs++) {
    if (x.length) {
      const options = {prior, noise, eta, rows, samples, share};
      theta = bbb.epoch(net, theta, x, y, options, random);
    } else {
      const {grad} = bbb.valueAndGrad(net, theta, bbb.normals(random, S), x, y, prior, noise, beta);
      theta = bbb.update(theta, grad, eta);
    }
    steps += Math.max(1, Math.ceil(y.length / rows));
    lost = !theta.every(each => Math.abs(each) < 1e6);
    if (lost) { stop(); break; }
  }
}

const TERM_NAMES = ["muPrior", "muData", "rhoWidth", "rhoPrior", "rhoData"];

// Take F on all data, with noise that stays, and the gradient, with fresh noise as in training.
function measure() {
  if (lost) return;
  const {prior, noise, samples, beta, mistake} = settings, [x, y] = columns(), P = theta.length / 2;
  const now = bbb.valueAndGrad(net, theta, staying("energy", 10 * P), x, y, prior, noise, 1);
  const constant = P * bbb.LOG_2PI / 2;  // K8 and K12 have it, K9 and K13 leave it out
  remember({
    epochs, f: now.value, q: now.logQ - constant, prior: constant - now.logPrior, nll: now.nll,
    printed: now.value - 2 * P * Math.log(prior),  // K18 as printed, for all data
  });
  const times = mistake === "share" ? Math.max(1, Math.ceil(points.length / settings.rows)) : 1;
  const eps = bbb.normals(random, samples * P), before = smooth;
  const drawn = bbb.valueAndGrad(net, theta, eps, x, y, prior, noise, beta * times);
  const old = running && before ? 0.93 : 0;
  const mean = name => drawn[name].map(
    (each, at) => old ? old * before[name][at] + (1 - old) * each : each);
  smooth = {now: drawn, ...Object.fromEntries(TERM_NAMES.map(name => [name, mean(name)]))};
}

// Keep a row for the curve of F; every other one goes when there are many.
function remember(row) {
  const last = past.rows.at(-1);
  if (!last || epochs - last.epochs >= past.every) past.rows.push(row);
  else past.rows[past.rows.length - 1] = {...row, epochs: last.epochs};
  if (past.rows.length > 400) {
    past.rows = past.rows.filter((_, at) => at % 2 === 0);
    past.every *= 2;
  }
}

// What the functions say, with the planted mistake if it is one of the band.
function predicted(grid, draws) {
  const {noise, mistake} = settings, eps = staying("functions", draws * theta.length / 2);
  const found = bbb.predict(net, theta, eps, grid, noise);
  const twice = spread => Math.hypot(spread, noise, noise);
  return mistake === "twice" ? {...found, total: found.epistemic.map(twice)} : found;
}

const fit = new Plot($("fit"), {
  x: [-4.5, 4.5], y: [-4, 14], xName: "load x (kg)", yName: "stretch beyond proportion, y (mm)",
  yShort: "stretch, y (mm)"});
const energy = new Plot($("energy"), {xName: "epochs", yName: "nats", left: 54});
const map = new Plot($("weights"), {log: "y", xName: "mean μ of a weight", yName: "σ"});
const density = new Plot($("density"), {xName: "weight w", yName: "density"});
const LOOKS = [["blue", []], ["green", [7, 4]], ["purple", [2, 3]]];

// What is left of the picture when the numbers have run away: the points.
function drawPoints() {
  fit.begin().inside(() => {
    fit.line(GRID, GRID.map(x => x * x), colour("grey"), 1.5, [6, 5]);
    fit.dots(points, colour("ink"), 2.5);
    if (cursor) fit.cross(...cursor, colour("vermillion"));
  });
}

function drawFit() {
  const found = predicted(GRID, 100), {mean, epistemic, total, functions} = found;
  const edge = (side, spread) => mean.map((each, at) => each + side * 2 * spread[at]);
  const exact = reference();
  fit.begin().inside(() => {
    fit.band(GRID, edge(-1, total), edge(1, total), colour("outer"));
    fit.band(GRID, edge(-1, epistemic), edge(1, epistemic), colour("inner"));
    for (const f of functions.slice(0, 12)) fit.line(GRID, f, colour("draws"), 1);
    fit.line(GRID, GRID.map(x => x * x), colour("grey"), 1.5, [6, 5]);
    for (const side of exact ? [-2, 2] : []) {
      const border = exact.mean.map((each, at) => each + side * exact.spread[at]);
      fit.line(exact.x, border, colour("ink"), 2, [2, 4]);
    }
    fit.line(GRID, mean, colour("vermillion"), 2.5);
    fit.dots(points, colour("ink"), 2.5);
    if (cursor) fit.cross(...cursor, colour("vermillion"));
  });
  $("reference-key").hidden = !exact;
  return found;
}

// The exact posterior's band, where it was computed: for the data with a gap, as they are.
function reference() {
  const {prior, noise, hidden} = settings;
  const same = points === DATA.gap.points && prior === 1 && noise === 0.3 && hidden === 20;
  return same ? EXACT : null;
}

function drawEnergy() {
  const {rows} = past, names = ["q", "prior", "nll", "f"];
  if (settings.mistake === "k18") names.push("printed");
  const late = rows.slice(Math.floor(rows.length * 0.15));
  const all = late.flatMap(row => names.map(name => row[name])).filter(Number.isFinite);
  const low = Math.min(0, ...all), high = Math.max(1, ...all), room = 0.05 * (high - low);
  energy.x = [0, Math.max(10, rows.at(-1).epochs)];
  energy.y = [low - room, high + room];
  const looks = {q: ["blue", 2, [7, 4]], prior: ["orange", 2, [2, 3]], nll: ["green", 1.5, []],
                 f: ["ink", 2.5, []], printed: ["vermillion", 2, [7, 4]]};
  energy.begin().inside(() => {
    for (const name of names) {
      const [ink, width, dash] = looks[name], values = rows.map(row => row[name]);
      energy.line(rows.map(row => row.epochs), values, colour(ink), width, dash);
    }
  });
  $("printed-key").hidden = settings.mistake !== "k18";
}

function nameOf(j) {
  const H = settings.hidden;
  if (j < H) return `W<sub>0</sub> to unit ${j + 1}`;
  if (j < 2 * H) return `b<sub>0</sub> of unit ${j - H + 1}`;
  return j < 3 * H ? `W<sub>1</sub> from unit ${j - 2 * H + 1}` : "b<sub>1</sub> of the output";
}

function drawWeights() {
  const P = theta.length / 2, {prior} = settings;
  const mu = theta.subarray(0, P), sigma = theta.subarray(P).map(bbb.softplus);
  const far = 1.1 * Math.max(1, ...mu.map(Math.abs));
  map.x = [-far, far];
  map.y = [Math.min(0.005, ...sigma), Math.max(3, prior, ...sigma)];
  map.begin().inside(() => {
    map.line(map.x, [prior, prior], colour("orange"), 2, [7, 4]);
    map.dots(Array.from(sigma, (each, j) => [mu[j], each]), colour("edge"), 3);
    chosen.forEach((j, at) => map.dot(mu[j], sigma[j], colour(LOOKS[at][0]), at ? 5 : 7, at > 0));
  });
  const ends = chosen.map(j => Math.abs(mu[j]) + 3 * sigma[j]);
  const reach = Math.max(Math.min(2 * prior, 3), ...ends);
  const w = Array.from({length: 301}, (_, at) => reach * (at / 150 - 1));
  const normal = (mean, spread) => w.map(each =>
    Math.exp(-(((each - mean) / spread) ** 2) / 2) / (spread * Math.sqrt(2 * Math.PI)));
  density.x = [-reach, reach];
  density.y = [0, 0.44 / Math.min(prior, ...chosen.map(j => sigma[j]))];
  density.begin().inside(() => {
    density.line(w, normal(0, prior), colour("orange"), 2, [7, 4]);
    chosen.forEach((j, at) => {
      const [ink, dash] = LOOKS[at];
      density.line(w, normal(mu[j], sigma[j]), colour(ink), 2.2, dash);
    });
  });
  chosen.forEach((j, at) => write($(`chosen-${at}`), `q of ${nameOf(j)}`));
}

const TERMS = {
  "dF/dμ (K21)": [
    ["prior: π<sub>i</sub> w/σ<sub>data</sub>²", "muPrior"], ["data: g<sub>w</sub>", "muData"],
    ["sum", "muPrior", "muData"]],
  "dF/dρ (K30)": [
    ["width: −π<sub>i</sub> s/σ", "rhoWidth"],
    ["prior: π<sub>i</sub> w ε s/σ<sub>data</sub>²", "rhoPrior"],
    ["data: g<sub>w</sub> ε s", "rhoData"], ["sum", "rhoWidth", "rhoPrior", "rhoData"]],
};
const BAR = `<svg viewBox="-100 -10 200 20" preserveAspectRatio="none" aria-hidden="true">
  <rect y="-7" height="14" fill="currentColor" opacity="0.6"/>
  <rect y="-9" width="4" height="18" fill="var(--vermillion)"/>
  <path d="M0-10V10" stroke="currentColor" vector-effect="non-scaling-stroke"/></svg>`;

function makeTerms() {
  const row = ([title, ...names]) => `<tr${names.length > 1 ? ' class="sum"' : ""}>
    <td>${title}</td><td class="bar">${BAR}</td><td></td></tr>`;
  $("terms").innerHTML = Object.entries(TERMS).map(([title, terms]) =>
    `<tbody><tr><th colspan="3">${title}</th></tr>${terms.map(row).join("")}</tbody>`).join("");
}

let scales = [0, 0];

function drawTerms() {
  const j = chosen[0];
  write($("which"), `${nameOf(j)}: bars are means over some 15 frames, ticks are this draw.`);
  Object.values(TERMS).forEach((terms, group) => {
    const add = (of, names) => names.reduce((sum, name) => sum + of[name][j], 0);
    const largest = Math.max(...terms.map(([, ...names]) => Math.abs(add(smooth, names))));
    const scale = scales[group] = Math.max(largest, 0.97 * scales[group], 1e-6);
    const place = value => Math.max(-98, Math.min(98, 90 * value / scale));
    terms.forEach(([, ...names], at) => {
      const {cells} = $("terms").tBodies[group].rows[at + 1], mean = add(smooth, names);
      const [bar, tick] = cells[1].querySelectorAll("rect");
      bar.setAttribute("x", Math.min(0, place(mean)));
      bar.setAttribute("width", Math.abs(place(mean)));
      tick.setAttribute("x", place(add(smooth.now, names)) - 2);
      cells[2].textContent = fixed(2)(mean);
    });
  });
}

// Compare the chosen weight's slopes with difference quotients of F, at the same noise.
function check() {
  const {prior, noise, beta} = settings, [x, y] = columns(), P = theta.length / 2, h = 1e-5;
  const eps = staying("energy", 10 * P);
  const at = moved => bbb.valueAndGrad(net, moved, eps, x, y, prior, noise, beta);
  const {grad} = at(theta);
  const told = place => {
    const moved = by => theta.map((each, j) => j === place ? each + by : each);
    const [up, down] = [at(moved(h)).value, at(moved(-h)).value];
    const [hand, quotient] = [grad[place], (up - down) / (2 * h)].map(each => each.toPrecision(6));
    return `${hand} by hand, ${quotient} by differences`.replaceAll("-", "−");
  };
  const [mu, rho] = [told(chosen[0]), told(P + chosen[0])];
  $("check").textContent = `Checked at the same noise: for μ ${mu}; for ρ ${rho}.`;
}

// Count the points between the edges of the outer band.
function inside({mean, total}) {
  return points.filter(([x, y]) => {
    const at = Math.max(0, Math.min(GRID.length - 2, Math.floor((x + 4.5) / 0.1)));
    const between = of => of[at] + (of[at + 1] - of[at]) * (x - GRID[at]) / 0.1;
    return Math.abs(y - between(mean)) <= 2 * between(total);
  }).length;
}

function tell(found) {
  if (lost) {
    $("said").textContent = `In epoch ${epochs + 1} the steps grew without bound: the rate is too
      large for this noise and these rows. The network is lost, and so its band. Make the rate
      smaller, or start again; a point that you add starts again too.`;
    return;
  }
  const P = theta.length / 2, sigma = theta.subarray(P).map(bbb.softplus).sort();
  const middle = (sigma[(P - 1) >> 1] + sigma[P >> 1]) / 2, {f, nll, printed} = past.rows.at(-1);
  const spread = x => shown(found.epistemic[Math.round((x + 4.5) / 0.1)], 2);
  const wrong = settings.mistake === "k18" ? `, as printed ${fixed(1)(printed)}` : "";
  $("said").textContent = `Epoch ${epochs}. F = ${fixed(1)(f)} nats${wrong},
    KL ${fixed(1)(f - nll)}. Half of the σ are below ${shown(middle, 2)}; they began at
    ${shown(bbb.softplus(settings.rho), 2)}. Functions spread by ${spread(0)} at x = 0,
    ${spread(1.5)} at 1.5, ${spread(4)} at 4. ${inside(found)} of ${points.length} points are inside
    the outer band.`;
}

function draw() {
  if (lost) {
    drawPoints();
    drawEnergy();
    tell();
    return;
  }
  const found = drawFit();
  if (!running || frames % 6 === 0) tell(found);
  if (document.body.classList.contains("bare") || running && frames % 2) return;
  drawEnergy();
  drawWeights();
  drawTerms();
  if (!running || frames % 30 === 0) check();
}

function frame() {
  if (!running) return;
  frames++;
  train(settings.speed);
  measure();
  if (epochs >= until) { stop(); return; }
  draw();
  next = requestAnimationFrame(frame);
}

// The rate to start again with, where the steps have grown without bound.
function smallerRate() {
  const {choices} = SLIDERS.find(({name}) => name === "eta");
  return choices.findLast(each => each <= settings.eta / 2) ?? settings.eta;
}

function go() {
  if (running) return;
  if (lost) {
    settings.eta = sliders.eta.set(smallerRate());
    address();
    start();
  }
  if (epochs >= until) until = epochs + 1000;
  running = true;
  $("go").textContent = "Pause";
  cancelAnimationFrame(next);
  next = requestAnimationFrame(frame);
}

function stop() {
  running = false;
  $("go").textContent = lost ? `Start again at rate ${smallerRate()}` : epochs ? "Go on" : "Start";
  draw();
}

// What was changed is answered, unless the reader has pressed Pause.
function answer() {
  if (lost) start();
  until = Math.max(until, epochs + 1000);
  measure();
  draw();
  if (!held) go();
}

// Add a point, or take the one away that is near.
function toggle([x, y]) {
  if (!fit.holds([x, y])) return;
  const apart = ([a, b]) => Math.hypot(fit.X(a) - fit.X(x), fit.Y(b) - fit.Y(y));
  const [close] = points.filter(each => apart(each) < 12).sort((a, b) => apart(a) - apart(b));
  points = close ? points.filter(each => each !== close) : [...points, [x, y]];
  answer();
}

// Choose a weight; the two that were chosen before stay beside it.
function choose(j) {
  chosen = [j, ...chosen.filter(each => each !== j)].slice(0, 3);
  scales = [0, 0];
  draw();
}

// Write into the address what is set, so that it can be sent.
function address() {
  const base = {...START, ...PRESETS[settings.preset]};
  const own = Object.keys(START).filter(name => settings[name] !== base[name]);
  const parts = [`preset=${settings.preset}`, ...own.map(name => `${name}=${settings[name]}`)];
  if (document.body.classList.contains("bare")) parts.push("bare");
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function set(name, value) {
  settings[name] = value;
  tellNotes([]);
  if (name === "data") points = DATA[value].points;
  address();
  if (["hidden", "rho"].includes(name) || lost) start();
  if (name !== "speed") answer();
}

// Set everything as a preset has it, and as the address says besides.
function load({preset, bare, ...others}) {
  const notes = [];
  if (!Object.hasOwn(PRESETS, preset)) {
    if (preset) notes.push(`No lesson is called ${preset.slice(0, 30)}; this is the first.`);
    preset = "band";
  }
  const lesson = PRESETS[preset];
  settings = {preset};
  for (const [name, plain] of Object.entries(START)) {
    const wanted = Object.hasOwn(others, name) ? others[name] : undefined;
    const own = lesson[name] ?? plain, all = {data: DATA, mistake: MISTAKES}[name];
    if (!all) {
      const {title} = SLIDERS.find(each => each.name === name);
      settings[name] = setAsAsked(sliders[name], title, wanted, own, notes);
      continue;
    }
    const known = wanted !== undefined && Object.hasOwn(all, wanted);
    if (wanted !== undefined && !known) notes.push(`${name}: ${wanted.slice(0, 30)} is not known.`);
    settings[name] = $(name).value = known ? wanted : own;
  }
  points = DATA[settings.data].points;
  until = lesson.until;
  chosen = null;
  held = running = false;
  scales = [0, 0];
  present(PRESETS, preset, "index.html", bare === "true");
  tellNotes(notes);
  for (const label of $("sliders").children) {
    label.classList.toggle("whole", label.htmlFor !== lesson.turn);
  }
  start();
  $("go").textContent = "Start";
}

presets(PRESETS, preset => { load({preset}); address(); go(); });
for (const options of SLIDERS) {
  const {name} = options, changed = value => set(name, value);
  sliders[name] = slider($("sliders"), {...options, value: START[name], changed});
}
for (const [id, all] of Object.entries({data: DATA, mistake: MISTAKES})) {
  for (const [value, {title}] of Object.entries(all)) $(id).add(new Option(title, value));
  $(id).addEventListener("change", () => set(id, $(id).value));
}
makeTerms();
$("go").addEventListener("click", () => { held = running; running ? stop() : go(); });
$("again").addEventListener("click", () => { held = false; start(); go(); });
$("step").addEventListener("click", () => {
  if (lost) start();
  until = Math.max(until, epochs + 1);
  train(1);
  measure();
  stop();
});
$("clear").addEventListener("click", () => { points = []; answer(); });
$("fit").addEventListener("click", event => { cursor = null; toggle(fit.at(event)); });
$("fit").addEventListener("keydown", event => {
  const far = event.shiftKey ? 0.2 : 1, way = arrowOf(event);
  if (way) {
    const [x, y] = cursor ?? [0, 0];
    const within = (value, [low, high]) => Math.max(low, Math.min(high, value));
    cursor = [within(x + 0.25 * far * way[0], fit.x), within(y + 0.5 * far * way[1], fit.y)];
  } else if (["Enter", " "].includes(event.key) && cursor) toggle(cursor);
  else if (event.key === "Escape") cursor = null;
  else return;
  event.preventDefault();
  draw();
});
$("weights").addEventListener("click", event => {
  const [x, y] = map.at(event), P = theta.length / 2, all = Array.from({length: P}, (_, j) => j);
  const apart = j => Math.hypot(
    map.X(theta[j]) - map.X(x), map.Y(bbb.softplus(theta[P + j])) - map.Y(y));
  choose(all.reduce((best, j) => apart(j) < apart(best) ? j : best));
});
$("weights").addEventListener("keydown", event => {
  const [step] = arrowOf(event) ?? [0], P = theta.length / 2;
  if (!step) return;
  event.preventDefault();
  chosen = [(chosen[0] + step + P) % P, ...chosen.slice(1)];
  scales = [0, 0];
  draw();
});
window.addEventListener("hashchange", () => { load(asked()); go(); });
onLook(draw);
load(asked());
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) go();
