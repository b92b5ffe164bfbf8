// Hamiltonian Monte Carlo on two dimensions, each line beside its equation: a ball on -log pi.
//
// Tags on the right are entries of the book's chapter on samplers. A target is a function of a
// position [x, y] that returns its log density, up to a constant, and its two slopes. The metric
// is the identity. tests/project/test_playground.py holds the path to that of Python.
"use strict";

const hmc = (() => {
  const DIVERGENT = 1000;  // nats of energy error: no path of the true motion, e^-1000 is 0

  // One Gaussian of standard deviations `wide` and `high` and correlation r.
  function gaussian(wide, high, r) {
    return ([x, y]) => {
      const [u, v] = [x / wide, y / high], scale = 1 / (1 - r * r);
      const logDensity = -0.5 * scale * (u * u - 2 * r * u * v + v * v);
      return [logDensity, -scale * (u - r * v) / wide, -scale * (v - r * u) / high];
    };
  }

  // The hierarchical funnel: y ~ N(0, high^2), and x ~ N(0, e^(2 y)).
  function funnel(high) {
    return ([x, y]) => {
      const precision = Math.exp(-2 * y), square = x * x * precision, variance = high * high;
      const logDensity = -y * y / (2 * variance) - square / 2 - y;
      return [logDensity, -x * precision, -y / variance + square - 1];
    };
  }

  // Round hills of equal height, as many as were drawn.
  function hills(centres, width) {
    return ([x, y]) => {
      const logs = centres.map(([a, b]) => -((x - a) ** 2 + (y - b) ** 2) / (2 * width * width));
      const top = Math.max(...logs);
      let sum = 0, dx = 0, dy = 0;
      centres.forEach(([a, b], at) => {
        const part = Math.exp(logs[at] - top);
        sum += part;
        dx += part * (a - x) / (width * width);
        dy += part * (b - y) / (width * width);
      });
      return [top + Math.log(sum), dx / sum, dy / sum];
    };
  }

  function phase(target, position, momentum) {
    const [logDensity, ...gradient] = target(position);
    return {position, momentum, logDensity, gradient};
  }

  // H = -log pi + r.r / 2; infinite where it is no number.
  function hamiltonian({momentum: [u, v], logDensity}) {
    const energy = (u * u + v * v) / 2 - logDensity;           // M7
    return Number.isNaN(energy) ? Infinity : energy;
  }

  function leapfrog(target, {position, momentum, gradient}, step) {
    const half = momentum.map((r, d) => r + step / 2 * gradient[d]);
    const next = phase(target, position.map((at, d) => at + step * half[d]), half); // M8
    next.momentum = half.map((r, d) => r + step / 2 * next.gradient[d]);
    return next;
  }

  // Follow the ball for some steps: its phases, their energies, and the first step at which it
  // comes nearer to its start (M9) or is lost (M10); -1 where there is none.
  function path(target, position, momentum, step, steps) {
    const phases = [phase(target, position, momentum)], energies = [hamiltonian(phases[0])];
    let turned = -1, diverged = -1;
    while (phases.length <= steps && diverged < 0) {
      const next = leapfrog(target, phases.at(-1), step), at = phases.length;
      phases.push(next);
      energies.push(hamiltonian(next));
      const way = next.position.map((each, d) => each - position[d]);
      const away = next.momentum[0] * way[0] + next.momentum[1] * way[1];
      if (turned < 0 && away <= 0) turned = at;                // M9
      if (!(energies[at] - energies[0] < DIVERGENT)) diverged = at; // M10
    }
    return {phases, energies, turned, diverged};
  }

  // One step of a chain: fresh momentum, a path of 1 to `most` steps, and the ratio decides.
  function move(target, position, step, most, random) {
    const momentum = Array.from(bbb.normals(random, 2)), steps = 1 + Math.floor(most * random());
    const found = path(target, position, momentum, step, steps);
    const accepted = found.diverged < 0
      && Math.log(random()) < found.energies[0] - found.energies.at(-1); // M7: min(1, e^(H0 - H1))
    return {...found, accepted, position: accepted ? found.phases.at(-1).position : position};
  }

  return {DIVERGENT, gaussian, funnel, hills, phase, hamiltonian, leapfrog, path, move};
})();
