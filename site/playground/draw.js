// Axes, lines, bands and points on a canvas, in the colours of the style sheet.
"use strict";

const colours = {};  // of the style sheet, asked for once
const colour = name =>
  colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const shown = (value, digits = 3) => {
  if (!Number.isFinite(value)) return "not finite";
  const size = Math.abs(value);
  if (size && (size < 1e-3 || size >= 1e5)) return value.toExponential(1).replaceAll("-", "−");
  return String(+value.toPrecision(digits)).replace("-", "−");
};

// Return round numbers from `low` to `high`, about `count` of them; powers of ten on a log axis.
function ticks(low, high, count, log) {
  const found = [];
  if (!(high > low) || log && !(low > 0)) return found;  // as numbers run away
  if (log) {
    const decades = Math.log10(high / low), digits = decades > 2.5 ? [1] : [1, 3];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const digit of digits) found.push(digit * 10 ** power);
    }
    return found.filter(each => each >= low * 0.999 && each <= high * 1.001);
  }
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(each => each * power >= rough * 0.7);
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

class Plot {
  constructor(canvas, options) {
    const plain = {x: [0, 1], y: [0, 1], left: 50, right: 10, top: 8, bottom: 38, log: ""};
    Object.assign(this, {canvas}, plain, options);
  }

  // Clear the canvas, and draw axes with their names.
  begin() {
    const {canvas} = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    const size = [width, height].map(each => Math.round(each * ratio));
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const pen = canvas.getContext("2d");
    const across = width - this.left - this.right, up = height - this.top - this.bottom;
    Object.assign(this, {pen, width, height, across, up});
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    const inkColour = colour("ink"), grid = colour("grid");
    pen.textAlign = "center";
    for (const tick of ticks(...this.x, Math.max(3, width / 80), this.log.includes("x"))) {
      this.stroke([[this.X(tick), this.top], [this.X(tick), height - this.bottom]], grid);
      pen.fillStyle = inkColour;
      pen.fillText(shown(tick), this.X(tick), height - this.bottom + 11);
    }
    pen.textAlign = "right";
    for (const tick of ticks(...this.y, Math.max(3, height / 50), this.log.includes("y"))) {
      this.stroke([[this.left, this.Y(tick)], [width - this.right, this.Y(tick)]], grid);
      pen.fillStyle = inkColour;
      pen.fillText(shown(tick), this.left - 5, this.Y(tick));
    }
    pen.textAlign = "center";
    pen.fillText(this.xName, (this.left + width - this.right) / 2, height - 9);
    pen.save();
    pen.translate(7, (this.top + height - this.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(this.nameOfY(), 0, 0);
    pen.restore();
    return this;
  }

  // The name of y, a shorter one where the canvas is too low for it.
  nameOfY() {
    const room = 2 * Math.min(this.top + this.up / 2, this.bottom + this.up / 2) - 2;
    return this.pen.measureText(this.yName).width > room ? this.yShort ?? this.yName : this.yName;
  }

  // Whether a pointer is within the axes: what is put beside them would not be seen.
  holds([x, y]) {
    return x >= this.x[0] && x <= this.x[1] && y >= this.y[0] && y <= this.y[1];
  }

  // Draw `body` within the axes only.
  inside(body) {
    const {pen} = this;
    pen.save();
    pen.beginPath();
    pen.rect(this.left, this.top, this.across, this.up);
    pen.clip();
    body();
    pen.restore();
  }

  share(value, [low, high], log) {
    return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  }

  X(value) {
    return this.left + this.share(value, this.x, this.log.includes("x")) * this.across;
  }

  Y(value) {
    return this.top + (1 - this.share(value, this.y, this.log.includes("y"))) * this.up;
  }

  // Return the numbers that belong to a pointer event.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.left) / this.across;
    const y = 1 - (event.clientY - box.top - this.top) / this.up;
    const value = (share, [low, high], log) =>
      log ? low * (high / low) ** share : low + share * (high - low);
    return [value(x, this.x, this.log.includes("x")), value(y, this.y, this.log.includes("y"))];
  }

  stroke(pixels, style, width = 1, dash = []) {
    const {pen} = this;
    pen.strokeStyle = style;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    pixels.forEach(([x, y], at) => at ? pen.lineTo(x, y) : pen.moveTo(x, y));
    pen.stroke();
    pen.setLineDash([]);
  }

  line(xs, ys, style, width = 2, dash = []) {
    this.stroke(Array.from(xs, (x, at) => [this.X(x), this.Y(ys[at])]), style, width, dash);
  }

  band(xs, low, high, style) {
    const {pen} = this, edge = [];
    xs.forEach((x, at) => edge.push([this.X(x), this.Y(high[at])]));
    for (let at = xs.length - 1; at >= 0; at--) edge.push([this.X(xs[at]), this.Y(low[at])]);
    pen.fillStyle = style;
    pen.beginPath();
    edge.forEach(([x, y], at) => at ? pen.lineTo(x, y) : pen.moveTo(x, y));
    pen.fill();
  }

  dot(x, y, style, radius = 3, hollow = false) {
    const {pen} = this;
    pen.beginPath();
    pen.arc(this.X(x), this.Y(y), radius, 0, 2 * Math.PI);
    pen.fillStyle = pen.strokeStyle = style;
    pen.lineWidth = 2;
    hollow ? pen.stroke() : pen.fill();
  }

  dots(points, style, radius) {
    const {pen} = this;
    pen.fillStyle = style;
    pen.beginPath();
    for (const [x, y] of points) {
      pen.moveTo(this.X(x), this.Y(y));
      pen.arc(this.X(x), this.Y(y), radius, 0, 2 * Math.PI);
    }
    pen.fill();
  }

  cross(x, y, style, radius = 6) {
    const [a, b] = [this.X(x), this.Y(y)];
    this.stroke([[a - radius, b - radius], [a + radius, b + radius]], style, 2.5);
    this.stroke([[a - radius, b + radius], [a + radius, b - radius]], style, 2.5);
  }
}

// Take the theme that was chosen on the site.
function takeTheme() {
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  } catch { /* a page that may store nothing follows the system */ }
}
takeTheme();

// Return what stands behind # or ?: names without a value are "true". A % that encodes nothing
// stays as it is.
function asked() {
  const pairs = new URLSearchParams(`${location.search.slice(1)}&${location.hash.slice(1)}`);
  return Object.fromEntries(Array.from(pairs, ([name, value]) => [name, value || "true"]));
}

// Make a slider that runs over `choices`; `changed` hears its value.
function slider(place, {name, title, choices, value, say = shown, changed}) {
  const label = document.createElement("label");
  label.innerHTML = `<span>${title}</span> <output></output><input type="range" min="0" step="1">`;
  const input = label.querySelector("input"), output = label.querySelector("output");
  input.id = label.htmlFor = name;  // else it would name the output
  input.max = choices.length - 1;
  const show = at => {
    input.value = at;
    output.innerHTML = say(choices[at]);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  const nearest = number => {
    const wanted = Math.max(choices[0], Math.min(choices.at(-1), number));
    return choices.reduce(
      (best, each, at) => Math.abs(each - wanted) < Math.abs(choices[best] - wanted) ? at : best, 0);
  };
  show(nearest(value));
  input.addEventListener("input", () => { show(+input.value); changed(choices[+input.value]); });
  place.append(label);
  return {set: wanted => { show(nearest(wanted)); return choices[+input.value]; }, input};
}

// Set a slider to what an address asks for, else to `plain`; say in `notes` what is not on it.
function setAsAsked({set}, title, wanted, plain, notes) {
  const number = wanted?.trim() ? +wanted : NaN;
  const value = set(Number.isFinite(number) ? number : plain);
  if (wanted !== undefined && number !== value) {
    notes.push(`${title}: ${wanted.slice(0, 30)} is none of its values; it is ${value}.`);
  }
  return value;
}

// Say which of the address's wishes could not be granted.
function tellNotes(notes) {
  const at = document.getElementById("notice");
  at.textContent = notes.join(" ");
  at.hidden = !notes.length;
}

// Make a button for each lesson.
function presets(lessons, chosen) {
  for (const [name, {title}] of Object.entries(lessons)) {
    const button = document.createElement("button");
    button.textContent = title;
    button.dataset.preset = name;
    button.addEventListener("click", () => chosen(name));
    document.getElementById("presets").append(button);
  }
}

// Show which lesson it is; `bare` leaves out all but the picture, for a frame of the book.
function present(lessons, name, page, bare) {
  const {title, text, tag} = lessons[name], at = id => document.getElementById(id);
  const href = `../tags/${tag}.html`, entry = tag.toUpperCase();
  const link = `<a class="book inline" href="${href}" target="_top">${entry}</a>`;
  document.body.classList.toggle("bare", bare);
  at("caption").innerHTML = `<strong>${title}.</strong> ${text} ${link}`;
  for (const button of at("presets").children) {
    const here = button.dataset.preset === name;
    button.setAttribute("aria-pressed", here);
    if (here) at("presets").scrollLeft = button.offsetLeft - at("presets").offsetLeft - 16;
  }
  at("open").href = `${page}#preset=${name}`;
}

// The way of an arrow key, right and up; nothing for another key.
const arrowOf = ({key}) =>
  ({ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]})[key];

// Draw again when the picture's size or the theme changes.
function onLook(draw) {
  const again = () => { for (const name of Object.keys(colours)) delete colours[name]; draw(); };
  new ResizeObserver(again).observe(document.querySelector("canvas.tall"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.addEventListener("storage", () => { takeTheme(); again(); });  // the page around a frame
}

// Write into an element only what is new there.
function write(element, html) {
  if (element.said !== html) { element.said = html; element.innerHTML = html; }
}
