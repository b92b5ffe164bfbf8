// The page: points in, bands out. The mathematics is in bbb.js; a planted mistake is made here.
"use strict";

const $ = id => document.getElementById(id);
const GRID = Float64Array.from({length: 91}, (_, at) => -4.5 + 0.1 * at);
const DATA = {
  parabola: {title: "100 points of x²", points: PARABOLA},
  gap: {title: "with a gap", points: PARABOLA.filter(([x]) => Math.abs(x) > 0.8)},
  three: {title: "three points", points: [[-1.5, 2.4], [0.2, 0], [1.4, 1.8]]},
  none: {title: "none", points: []},
};
const MISTAKES = {
  none: "none",
  share: "each minibatch pays the whole KL",
  k18: "K18 with its printed sign",
  twice: "noise counted twice",
};
const START = {prior: 1, noise: 0.3, hidden: 20, samples: 1, beta: 1, rho: -2, eta: 0.002, rows: 10,
               speed: 10, data: "parabola", mistake: "none"};
const say = digits => value => value.toFixed(digits).replace("-", "−");
const SLIDERS = [
  {name: "prior", title: "standard deviation of the prior", choices: [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 2.5, 3, 5, 10]},
  {name: "noise", title: "standard deviation of the noise", choices: [0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3]},
  {name: "hidden", title: "hidden units", choices: [1, 2, 3, 5, 10, 20, 50]},
  {name: "samples", title: "S, networks drawn a step", choices: [1, 2, 4, 8, 16, 32]},
  {name: "beta", title: "factor on the KL", choices: [0, 0.01, 0.1, 0.3, 1, 3, 10]},
  {name: "rho", title: "ρ at the start", choices: Array.from({length: 29}, (_, at) => -6 + at / 4),
   say: rho => `${say(2)(rho)}, σ = ${shown(bbb.softplus(rho), 2)}`},
  {name: "eta", title: "learning rate", choices: [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2], say: rate => String(rate)},
  {name: "rows", title: "rows a step", choices: [1, 2, 5, 10, 20, 50, 100]},
  {name: "speed", title: "speed, steps a frame", choices: [10, 50, 200]},
];
// A lesson each: what is set, where it stops, what to see, and the page of the equation.
const PRESETS = {
  band: {title: "The first band", until: 300, tag: "k4",
    text: "The band opens where the data end. Not by enough: a mean field trusts its straight lines too much."},
  report: {title: "A σ that is not learned", until: 300, rho: -5, tag: "k30",
    text: "The report starts at ρ = −5. Each epoch then adds the learning rate to ρ, whatever the data say: see the first term of K30 outweigh the others. Raise the speed and go on: after some 2,000 epochs the data speak."},
  gap: {title: "A gap, bridged too surely", until: 1000, data: "gap", speed: 50, tag: "d8",
    text: "No points between −0.8 and 0.8. The weights of a mean field are independent: they cannot agree to be sure at the data and undecided between. At x = 0 functions spread by 0.04; by 0.53 under the exact posterior, which is dotted."},
  narrow: {title: "Prior too narrow", until: 300, prior: 0.1, tag: "k21",
    text: "A prior of 0.1 pulls each weight to 0 with 100 times the force of a prior of 1: see K21. The curve cannot bend, a quarter of the points are outside the band, and F is three times as high."},
  share: {title: "The forgotten 1/N", until: 300, mistake: "share", rows: 1, tag: "d6",
    text: "Every step pays the whole KL, 100 times an epoch: q falls back to the prior, as if the data said 100 times less. Set the mistake to none."},
  k18: {title: "The sign of K18", until: 1000, prior: 2.5, mistake: "k18", speed: 50, tag: "k18",
    text: "As printed, F has −log σ_data where it needs a plus. The gradient does not notice. But with a prior of 2.5 the printed F is 2P log 2.5 nats too low: for 61 weights, 112."},
  twice: {title: "Noise counted twice", until: 300, mistake: "twice", tag: "d4",
    text: "Variances of functions and noise add. Whoever adds noise to the functions, and then its variance again, draws a band √2 times too wide where data are dense."},
  one: {title: "Noise assumed, not learned", until: 300, noise: 1, tag: "k14",
    text: "The report assumes noise of 1; these points scatter by 0.3. Every point is inside the band, and the fit need not come near them."},
  samples: {title: "One draw or many", until: 300, samples: 1, tag: "r3",
    text: "A step sees one network. The gradient is right on average: watch its dots jump around the bars, and choose S = 32."},
  cold: {title: "A factor on the KL", until: 1000, beta: 0.1, speed: 50, tag: "d24",
    text: "With a tenth of the KL, q is that of someone who has seen the data ten times: the functions come closer together. With 0 nothing holds q open."},
  units: {title: "Too small a network", until: 1000, hidden: 1, speed: 50, tag: "m21",
    text: "One hidden unit: F says how bad it is. Choose 2, 10, 50, and compare F: it is lowest where the network is large enough, not where it is largest."},
  three: {title: "Three points", until: 3000, data: "three", speed: 50, tag: "k5",
    text: "Three points leave much open, and the prior decides. Add points, and see the band close."},
  away: {title: "Steps too large", until: 300, eta: 0.01, tag: "k43",
    text: "With this rate the steps grow without bound. Halve it until they do not."},
};

let settings, points, net, theta, random, epochs, past, chosen, running, lost, until, smooth;
let held = false;   // whether the reader has pressed Pause
let cursor = null;  // of the keyboard
const eps = {};  // noise that stays, so that what is drawn moves only as theta does
const sliders = {};

function fixed(name, count) {
  if (!eps[name] || eps[name].length !== count) eps[name] = bbb.normals(bbb.uniforms(7), count);
  return eps[name];
}

function start() {
  random = bbb.uniforms(1);
  net = [1, settings.hidden, 1];
  theta = bbb.init(net, random, settings.rho);
  epochs = 0;
  lost = false;
  past = {every: 1, rows: []};
  smooth = null;
  const P = bbb.size(net), H = settings.hidden, unit = Math.min(2, H - 1);
  if (!chosen || chosen.some(each => each >= P)) chosen = [2 * H + unit, unit, H + unit];
  measure();
  draw();
}

const table = () => [Float64Array.from(points, ([x]) => x), Float64Array.from(points, ([, y]) => y)];

// Descend for some steps, whole epochs, but not so long that the picture halts.
function train(most) {
  const {prior, noise, eta, rows, samples, beta, mistake} = settings;
  const share = (some, all) => beta * (mistake === "share" ? 1 : some / all);
  const [x, y] = table(), began = performance.now();
  for (let steps = 0; steps < most && epochs < until && performance.now() - began < 14; epochs++) {
    if (x.length) theta = bbb.epoch(net, theta, x, y, {prior, noise, eta, rows, samples, share}, random);
    else theta = bbb.update(theta, bbb.valueAndGrad(net, theta, bbb.normals(random, samples * theta.length / 2), x, y, prior, noise, beta).grad, eta);
    steps += Math.max(1, Math.ceil(y.length / rows));
    if (!theta.every(each => Math.abs(each) < 1e6)) { lost = true; stop(); break; }
  }
}

// Take F on all data, with noise that stays, and the gradient, with fresh noise as in training.
function measure() {
  if (lost) return;
  const {prior, noise, samples, beta, mistake, rows: batch} = settings, [x, y] = table(), P = theta.length / 2;
  const now = bbb.valueAndGrad(net, theta, fixed("energy", 10 * P), x, y, prior, noise, 1);
  const constant = P * bbb.LOG_2PI / 2;  // K8 and K12 have it, K9 and K13 leave it out
  const row = {epochs, f: now.value, q: now.logQ - constant, prior: constant - now.logPrior, nll: now.nll,
               printed: now.value - 2 * P * Math.log(prior)};
  const {rows} = past;
  if (!rows.length || epochs - rows.at(-1).epochs >= past.every) rows.push(row);
  else rows[rows.length - 1] = rows.length === 1 ? row : {...row, epochs: rows.at(-1).epochs};
  if (rows.length > 400) {
    past.rows = rows.filter((_, at) => at % 2 === 0);
    past.every *= 2;
  }
  const paid = beta * (mistake === "share" ? Math.max(1, Math.ceil(points.length / batch)) : 1);  // an epoch
  const drawn = bbb.valueAndGrad(net, theta, bbb.normals(random, samples * P), x, y, prior, noise, paid);
  const names = ["muPrior", "muData", "rhoWidth", "rhoPrior", "rhoData"];
  const keep = running && smooth ? 0.93 : 0;
  const before = smooth;
  smooth = Object.fromEntries(names.map(name =>
    [name, drawn[name].map((each, at) => keep && before ? keep * before[name][at] + (1 - keep) * each : each)]));
  smooth.now = drawn;
}

// What the functions say, with the planted mistake if it is one of the band.
function predicted(grid, name, draws) {
  const found = bbb.predict(net, theta, fixed(name, draws * theta.length / 2), grid, settings.noise);
  if (settings.mistake === "twice") found.total = found.epistemic.map(each => Math.hypot(each, settings.noise, settings.noise));
  return found;
}

const fit = new Plot($("fit"), {x: [-4.5, 4.5], y: [-4, 14], xName: "x (dimensionless)", yName: "y (dimensionless)"});
const energy = new Plot($("energy"), {x: [0, 1], y: [0, 1], xName: "epochs", yName: "nats", left: 54});
const map = new Plot($("weights"), {x: [-2, 2], y: [0.005, 3], log: "y", xName: "mean μ of a weight", yName: "σ"});
const density = new Plot($("density"), {x: [-3, 3], y: [0, 1], xName: "weight w", yName: "density"});
const LOOKS = [["blue", []], ["green", [7, 4]], ["purple", [2, 3]]];

function drawFit() {
  const found = predicted(GRID, "functions", 100);
  const {mean, epistemic, total, functions} = found;
  const edge = (side, spread) => mean.map((each, at) => each + side * 2 * spread[at]);
  fit.begin().inside(() => {
    fit.band(GRID, edge(-1, total), edge(1, total), colour("outer"));
    fit.band(GRID, edge(-1, epistemic), edge(1, epistemic), colour("inner"));
    for (const f of functions.slice(0, 12)) fit.line(GRID, f, colour("draws"), 1);
    fit.line(GRID, GRID.map(x => x * x), colour("grey"), 1.5, [6, 5]);
    const exact = reference();
    if (exact) for (const side of [-2, 2]) {
      fit.line(exact.x, exact.mean.map((each, at) => each + side * exact.spread[at]), colour("ink"), 2, [2, 4]);
    }
    fit.line(GRID, mean, colour("vermillion"), 2.5);
    for (const [x, y] of points) fit.dot(x, y, colour("ink"), 2.5);
    if (cursor) fit.cross(...cursor, colour("vermillion"));
  });
  $("reference-key").hidden = !reference();
  return found;
}

// The exact posterior's band, where it was computed: for the data with a gap, as they are.
function reference() {
  const {prior, noise, hidden, data} = settings;
  const asComputed = data === "gap" && prior === 1 && noise === 0.3 && hidden === 20;
  return typeof EXACT !== "undefined" && asComputed && points === DATA.gap.points ? EXACT : null;
}

function drawEnergy() {
  const {rows} = past, late = rows.slice(Math.floor(rows.length * 0.15));
  const printed = settings.mistake === "k18";
  const all = late.flatMap(row => [row.f, row.q, row.prior, row.nll, ...(printed ? [row.printed] : [])]).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...all), Math.max(1, ...all)];
  energy.x = [0, Math.max(10, rows.at(-1)?.epochs ?? 0)];
  energy.y = [low - 0.05 * (high - low), high + 0.05 * (high - low)];
  energy.begin().inside(() => {
    const at = rows.map(row => row.epochs);
    const line = (name, style, width, dash) => energy.line(at, rows.map(row => row[name]), style, width, dash);
    line("q", colour("blue"), 2, [7, 4]);
    line("prior", colour("orange"), 2, [2, 3]);
    line("nll", colour("green"), 1.5);
    if (printed) line("printed", colour("vermillion"), 2, [7, 4]);
    line("f", colour("ink"), 2.5);
  });
  $("printed-key").hidden = !printed;
}

function nameOf(j) {
  const H = settings.hidden;
  if (j < H) return `W<sub>0</sub> to unit ${j + 1}`;
  if (j < 2 * H) return `b<sub>0</sub> of unit ${j - H + 1}`;
  return j < 3 * H ? `W<sub>1</sub> from unit ${j - 2 * H + 1}` : "b<sub>1</sub> of the output";
}

function drawWeights() {
  const P = theta.length / 2, {prior} = settings;
  const sigma = Array.from({length: P}, (_, j) => bbb.softplus(theta[P + j]));
  const far = Math.max(1, ...theta.subarray(0, P).map(Math.abs));
  map.x = [-1.1 * far, 1.1 * far];
  map.y = [Math.min(0.005, ...sigma), Math.max(3, prior, ...sigma)];
  map.begin().inside(() => {
    map.line(map.x, [prior, prior], colour("orange"), 2, [7, 4]);
    sigma.forEach((each, j) => map.dot(theta[j], each, colour("edge"), 3));
    chosen.forEach((j, at) => map.dot(theta[j], sigma[j], colour(LOOKS[at][0]), at ? 5 : 7, at > 0));
  });
  const reach = Math.max(...chosen.map(j => Math.abs(theta[j]) + 3 * sigma[j]), Math.min(2 * prior, 3));
  const w = Array.from({length: 301}, (_, at) => reach * (at / 150 - 1));
  const normal = (mu, s) => w.map(each => Math.exp(-(((each - mu) / s) ** 2) / 2) / (s * Math.sqrt(2 * Math.PI)));
  density.x = [-reach, reach];
  density.y = [0, 1.1 * Math.max(...[...chosen.map(j => sigma[j]), prior].map(s => 0.4 / s))];
  density.begin().inside(() => {
    density.line(w, normal(0, prior), colour("orange"), 2, [7, 4]);
    chosen.forEach((j, at) => density.line(w, normal(theta[j], sigma[j]), colour(LOOKS[at][0]), 2.2, LOOKS[at][1]));
  });
  chosen.forEach((j, at) => write($(`chosen-${at}`), `q of ${nameOf(j)}`));
}

const TERMS = [
  ["dF/dμ (K21)"], ["prior: π<sub>i</sub> w/σ<sub>data</sub>²", "muPrior"], ["data: g<sub>w</sub>", "muData"], ["sum", "muPrior", "muData"],
  ["dF/dρ (K30)"], ["width: −π<sub>i</sub> s/σ", "rhoWidth"], ["prior: π<sub>i</sub> w ε s/σ<sub>data</sub>²", "rhoPrior"], ["data: g<sub>w</sub> ε s", "rhoData"],
  ["sum", "rhoWidth", "rhoPrior", "rhoData"],
];

function makeTerms() {
  $("terms").innerHTML = TERMS.map(([title, ...names]) => names.length
    ? `<tr${names.length > 1 ? ' class="sum"' : ""}><td>${title}</td><td class="bar"><svg viewBox="-100 -10 200 20" preserveAspectRatio="none" aria-hidden="true"><rect y="-7" height="14" fill="currentColor" opacity="0.6"/><rect y="-9" width="4" height="18" fill="var(--vermillion)"/><path d="M0-10V10" stroke="currentColor" vector-effect="non-scaling-stroke"/></svg></td><td></td></tr>`
    : `<tr><th colspan="3">${title}</th></tr>`).join("");
}

let scales = {};
function drawTerms() {
  const j = chosen[0];
  write($("which"), `${nameOf(j)}: bars are means over some 15 frames, ticks are this draw.`);
  const rows = $("terms").rows;
  let group = 0;
  TERMS.forEach(([, ...names], at) => {
    if (!names.length) {
      group = at;
      const largest = Math.max(1e-6, ...TERMS.slice(at + 1, at ? 9 : 4).flatMap(([, ...each]) =>
        each.map(name => Math.abs(smooth[name][j]))));
      scales[group] = Math.max(largest, 0.97 * (scales[group] ?? 0));
      return;
    }
    const add = of => names.reduce((sum, name) => sum + of[name][j], 0);
    const share = value => Math.max(-98, Math.min(98, 90 * value / scales[group]));
    const [bar, tick] = rows[at].querySelectorAll("rect"), mean = share(add(smooth));
    bar.setAttribute("x", Math.min(0, mean));
    bar.setAttribute("width", Math.abs(mean));
    tick.setAttribute("x", share(add(smooth.now)) - 2);
    rows[at].cells[2].textContent = say(2)(add(smooth));
  });
}

// Compare the chosen weight's slopes with difference quotients of F, at the same noise.
function check() {
  const {prior, noise, beta} = settings, [x, y] = table(), P = theta.length / 2, j = chosen[0], h = 1e-5;
  const noises = fixed("energy", 10 * P);
  const at = moved => bbb.valueAndGrad(net, moved, noises, x, y, prior, noise, beta);
  const quotient = place => {
    const [up, down] = [theta.slice(), theta.slice()];
    up[place] += h;
    down[place] -= h;
    return (at(up).value - at(down).value) / (2 * h);
  };
  const {grad} = at(theta);
  const told = place => `${grad[place].toPrecision(6)} by hand, ${quotient(place).toPrecision(6)} by differences`.replaceAll("-", "−");
  $("check").innerHTML = `Checked at the same noise: for μ ${told(j)}; for ρ ${told(P + j)}.`;
}

function tell(found) {
  if (lost) {
    $("said").textContent = `After ${epochs} epochs the steps grow without bound: the rate is too large for this noise and these rows. Make it smaller, and start again.`;
    return;
  }
  const P = theta.length / 2, sorted = Array.from(theta.subarray(P), bbb.softplus).sort((a, b) => a - b);
  const middle = (sorted[(P - 1) >> 1] + sorted[P >> 1]) / 2, spread = x => shown(found.epistemic[Math.round((x + 4.5) / 0.1)], 2);
  const inside = points.filter(([x, y]) => {
    const at = Math.max(0, Math.min(GRID.length - 2, Math.floor((x + 4.5) / 0.1))), part = (x - GRID[at]) / 0.1;
    const between = of => of[at] * (1 - part) + of[at + 1] * part;
    return Math.abs(y - between(found.mean)) <= 2 * between(found.total);
  }).length;
  const f = past.rows.at(-1);
  $("said").textContent = `Epoch ${epochs}. F = ${say(1)(f.f)} nats${settings.mistake === "k18" ? `, as printed ${say(1)(f.printed)}` : ""}, KL ${say(1)(f.f - f.nll)}. `
    + `Half of the σ are below ${shown(middle, 2)} (start ${shown(bbb.softplus(settings.rho), 2)}). `
    + `Functions spread by ${spread(0)} at x = 0, ${spread(1.5)} at 1.5, ${spread(4)} at 4. `
    + `${inside} of ${points.length} points are inside the outer band.`;
}

let frames = 0;
function draw() {
  if (lost) { tell(); return; }
  const found = drawFit();
  if (!running || frames % 6 === 0) tell(found);
  if (document.body.classList.contains("bare")) return;
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
  requestAnimationFrame(frame);
}

function go() {
  if (running || lost) return;
  if (epochs >= until) until = epochs + 1000;
  running = true;
  $("go").textContent = "Pause";
  requestAnimationFrame(frame);
}

function stop() {
  running = false;
  $("go").textContent = epochs ? "Go on" : "Start";
  draw();
}

// Choose a weight; the two that were chosen before stay beside it.
function choose(j) {
  chosen = [j, ...chosen.filter(each => each !== j)].slice(0, 3);
  scales = {};
  draw();
}

function toggle([x, y], near = 12) {
  const apart = ([a, b]) => Math.hypot(fit.X(a) - fit.X(x), fit.Y(b) - fit.Y(y));
  const close = points.filter(each => apart(each) < near).sort((a, b) => apart(a) - apart(b))[0];
  points = close ? points.filter(each => each !== close) : [...points, [x, y]];
  answer();
}

// Write into the address what is set, so that it can be sent.
function remember() {
  const base = {...START, ...PRESETS[settings.preset]};
  const own = Object.keys(START).filter(name => settings[name] !== base[name]);
  const parts = [`preset=${settings.preset}`, ...own.map(name => `${name}=${settings[name]}`)];
  if (document.body.classList.contains("bare")) parts.push("bare");
  history.replaceState(null, "", `#${parts.join("&")}`);
}

// What was changed is answered, unless the reader has pressed Pause.
function answer() {
  until = Math.max(until, epochs + 1000);
  measure();
  draw();
  if (!held) go();
}

function set(name, value) {
  settings[name] = value;
  if (name === "data") points = DATA[value].points;
  remember();
  if (["hidden", "rho"].includes(name) || lost) start();
  if (name !== "speed") answer();
}

// Set everything as a preset has it, and as the address says besides.
function load({preset, bare, ...others}) {
  const known = preset in PRESETS ? preset : "band", lesson = PRESETS[known];
  document.body.classList.toggle("bare", bare === "true" || bare === "");
  settings = {...START, preset: known};
  for (const name of Object.keys(START)) {
    if (name in lesson) settings[name] = lesson[name];
    const wanted = others[name];
    if (name === "data" || name === "mistake") {
      if (wanted in (name === "data" ? DATA : MISTAKES)) settings[name] = wanted;
      $(name).value = settings[name];
    } else {
      const number = wanted !== undefined && Number.isFinite(+wanted) ? +wanted : settings[name];
      settings[name] = sliders[name].set(number);
    }
  }
  points = DATA[settings.data].points;
  until = lesson.until;
  chosen = null;
  scales = {};
  $("caption").innerHTML = `<strong>${lesson.title}.</strong> ${lesson.text} <a class="book inline" href="../tags/${lesson.tag}.html" target="_top">${lesson.tag.toUpperCase()}</a>`;
  for (const button of $("presets").children) button.setAttribute("aria-pressed", button.dataset.preset === known);
  $("open").href = `index.html#preset=${known}`;
  held = running = false;
  start();
  $("go").textContent = "Start";
}

for (const [name, {title}] of Object.entries(PRESETS)) {
  const button = document.createElement("button");
  button.textContent = title;
  button.dataset.preset = name;
  button.addEventListener("click", () => { load({preset: name}); remember(); go(); });
  $("presets").append(button);
}
for (const options of SLIDERS) {
  sliders[options.name] = slider($("sliders"), {...options, value: START[options.name], changed: value => set(options.name, value)});
}
for (const [id, all] of [["data", Object.entries(DATA).map(([name, {title}]) => [name, title])], ["mistake", Object.entries(MISTAKES)]]) {
  for (const [value, title] of all) $(id).add(new Option(title, value));
  $(id).addEventListener("change", () => set(id, $(id).value));
}
makeTerms();
$("go").addEventListener("click", () => { held = running; running ? stop() : go(); });
$("again").addEventListener("click", () => { held = false; start(); go(); });
$("step").addEventListener("click", () => { if (running) stop(); until = Math.max(until, epochs + 1); train(1); measure(); stop(); });
$("clear").addEventListener("click", () => { points = []; answer(); });
$("fit").addEventListener("click", event => { cursor = null; toggle(fit.at(event)); });
$("fit").addEventListener("keydown", event => {
  const step = event.shiftKey ? 0.2 : 1;
  const move = {ArrowLeft: [-0.25, 0], ArrowRight: [0.25, 0], ArrowUp: [0, 0.5], ArrowDown: [0, -0.5]}[event.key];
  if (move) {
    const [x, y] = cursor ?? [-0.25, 0];
    cursor = [Math.max(-4.5, Math.min(4.5, x + step * move[0])), Math.max(-4, Math.min(14, y + step * move[1]))];
  } else if ((event.key === "Enter" || event.key === " ") && cursor) toggle(cursor);
  else if (event.key === "Escape") cursor = null;
  else return;
  event.preventDefault();
  draw();
});
$("weights").addEventListener("click", event => {
  const [x, y] = map.at(event), P = theta.length / 2;
  const apart = j => Math.hypot(map.X(theta[j]) - map.X(x), map.Y(bbb.softplus(theta[P + j])) - map.Y(y));
  choose(Array.from({length: P}, (_, j) => j).reduce((best, j) => apart(j) < apart(best) ? j : best));
});
$("weights").addEventListener("keydown", event => {
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key], P = theta.length / 2;
  if (!step) return;
  event.preventDefault();
  chosen = [(chosen[0] + step + P) % P, ...chosen.slice(1)];
  scales = {};
  draw();
});
window.addEventListener("hashchange", () => { load(asked()); go(); });
onLook(() => draw());
load(asked());
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) go();
