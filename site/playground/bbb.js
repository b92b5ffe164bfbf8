// bbb_numpy/plain.py in JavaScript: Bayes by Backprop for regression, each line by its equation.
//
// Mean field, Gaussian prior, Gaussian noise, ReLU. The tags on the right are entries of the book.
// tests/project/test_playground.py holds value and gradient to those of Python.
//
//     net      widths of the network, [d_in, hidden..., K]
//     theta    mu, then rho, of all P weights and biases, (2P)
//     eps      standard normal noise of S weight samples, (S, P)
//     x, y     B rows of inputs (B, d_in) and targets (B, K)
//     prior    standard deviation of the prior
//     noise    standard deviation of y around the network's output
//     pi       share of the KL term that these rows pay
//
// Arrays are flat Float64Arrays; the last index runs fastest.
"use strict";

const bbb = (() => {
  const LOG_2PI = Math.log(2 * Math.PI);

  // log(1 + e^rho) and its slope, where neither overflows: D7
  const softplus = rho => Math.log1p(Math.exp(-Math.abs(rho))) + Math.max(rho, 0);       // K3
  const sigmoid = rho => (rho > 0 ? 1 : Math.exp(rho)) / (1 + Math.exp(-Math.abs(rho))); // K24

  // Say where in flat weights W (d_in, d_out) and b (d_out) of every layer begin.
  function layout(net) {
    let at = 0;
    return net.slice(1).map((dOut, l) => {
      const dIn = net[l], W = at, b = W + dIn * dOut;
      at = b + dOut;
      return {dIn, dOut, W, b};
    });
  }

  const size = net => net.slice(1).reduce((sum, dOut, l) => sum + (net[l] + 1) * dOut, 0); // P

  function relu(z) {
    for (let at = 0; at < z.length; at++) if (!(z[at] > 0)) z[at] = 0; // K32, K34, K35
  }

  // Return the outputs (B, K) of one network w (P), and what `vjp` needs.
  function forward(net, w, x) {
    const tape = [], B = x.length / net[0], layers = layout(net);
    let a = x;
    for (const {dIn, dOut, W, b} of layers) {
      tape.push(a);                                            // a_{l-1}
      const z = new Float64Array(B * dOut);
      for (let row = 0; row < B; row++) {
        for (let j = 0; j < dOut; j++) {
          let sum = w[b + j];
          for (let i = 0; i < dIn; i++) sum += a[row * dIn + i] * w[W + i * dOut + j];
          z[row * dOut + j] = sum;                             // K31, K33, K36
        }
      }
      if (tape.length < layers.length) relu(z);                // K36: no ReLU at the end
      a = z;
    }
    return {f: a, tape};
  }

  function gate(slope, a) {
    for (let at = 0; at < slope.length; at++) if (!(a[at] > 0)) slope[at] = 0; // [z > 0]
  }

  // Pull dF (B, K), a slope for the outputs, back to the slope for the weights (P).
  function vjp(net, w, tape, dF) {
    const dW = new Float64Array(w.length), layers = layout(net);
    let delta = dF;                                            // delta_{L-1}
    for (let l = layers.length - 1; l >= 0; l--) {
      const {dIn, dOut, W, b} = layers[l], a = tape[l], B = delta.length / dOut;
      const below = new Float64Array(B * dIn);
      for (let row = 0; row < B; row++) {
        for (let j = 0; j < dOut; j++) {
          const slope = delta[row * dOut + j];
          dW[b + j] += slope;                                  // K37, K39, K41
          for (let i = 0; i < dIn; i++) {
            dW[W + i * dOut + j] += a[row * dIn + i] * slope;  // K38, K40, K42
            below[row * dIn + i] += slope * w[W + i * dOut + j];
          }
        }
      }
      if (l) gate(below, a);                                   // K39, K41: delta_{l-1}
      delta = below;
    }
    return dW;
  }

  // Return the free energy of a minibatch (nats), its gradient for theta, and of what they consist:
  // means of log q, log P(w) and -log P(D|w), and for each weight the terms of K21 and K30.
  function valueAndGrad(net, theta, eps, x, y, prior, noise, pi) {
    const P = theta.length / 2, S = eps.length / P;
    const sigma = new Float64Array(P), slope = new Float64Array(P), w = new Float64Array(P);
    for (let j = 0; j < P; j++) {
      sigma[j] = softplus(theta[P + j]);                       // K3
      slope[j] = sigmoid(theta[P + j]);                        // K24
    }
    let logQ = 0, logPrior = 0, nll = 0;
    const [muPrior, muData, rhoWidth, rhoPrior, rhoData] =
      Array.from({length: 5}, () => new Float64Array(P));
    for (let s = 0; s < S; s++) {
      for (let j = 0; j < P; j++) {
        const e = eps[s * P + j];
        w[j] = theta[j] + sigma[j] * e;                        // K4
        logQ += -Math.log(sigma[j]) - e * e / 2;               // K10
        logPrior += -Math.log(prior) - w[j] ** 2 / (2 * prior ** 2); // K13
      }
      const {f, tape} = forward(net, w, x);                    // K31-K36
      for (let at = 0; at < f.length; at++) {
        nll += (y[at] - f[at]) ** 2 / (2 * noise ** 2) + Math.log(noise) + LOG_2PI / 2; // K15
      }
      const dF = new Float64Array(f.length);
      for (let at = 0; at < f.length; at++) dF[at] = -(y[at] - f[at]) / noise ** 2; // K16
      const gW = vjp(net, w, tape, dF);                        // K37-K42
      for (let j = 0; j < P; j++) {
        const e = eps[s * P + j] * slope[j];                   // K28: dw/drho
        muPrior[j] += pi * w[j] / prior ** 2 / S;              // K19
        muData[j] += gW[j] / S;                                // K19, with K20: dw/dmu = 1
        rhoPrior[j] += pi * w[j] / prior ** 2 * e / S;         // K26
        rhoData[j] += gW[j] * e / S;                           // K29
      }
    }
    const grad = new Float64Array(2 * P);
    for (let j = 0; j < P; j++) {
      rhoWidth[j] = -pi / sigma[j] * slope[j];                 // K25
      grad[j] = muPrior[j] + muData[j];                        // K21
      grad[P + j] = rhoWidth[j] + rhoPrior[j] + rhoData[j];    // K30
    }
    logQ /= S; logPrior /= S; nll /= S;
    const value = pi * (logQ - logPrior) + nll;                // K5, K9, K18
    return {value, grad, logQ, logPrior, nll, muPrior, muData, rhoWidth, rhoPrior, rhoData};
  }

  // Return a source of uniform numbers in (0, 1) that a seed repeats: splitmix32.
  function uniforms(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x9e3779b9) >>> 0;
      let bits = state;
      bits = Math.imul(bits ^ bits >>> 16, 0x21f0aaad);
      bits = Math.imul(bits ^ bits >>> 15, 0x735a2d97);
      return ((bits ^ bits >>> 15) >>> 0) / 2 ** 32 + 2 ** -33;
    };
  }

  // Draw standard normal noise, two numbers from two uniform ones: D11.
  function normals(random, count) {
    const drawn = new Float64Array(count);
    for (let at = 0; at < count; at += 2) {
      const radius = Math.sqrt(-2 * Math.log(random())), angle = 2 * Math.PI * random();
      drawn[at] = radius * Math.cos(angle);
      if (at + 1 < count) drawn[at + 1] = radius * Math.sin(angle);
    }
    return drawn;
  }

  // Draw the first theta: small means, and sigma = log(1 + e^rho).
  function init(net, random, rho = -2) {
    const P = size(net), theta = new Float64Array(2 * P), noise = normals(random, P);
    for (let j = 0; j < P; j++) {
      theta[j] = 0.1 * noise[j];
      theta[P + j] = rho + 0.02 * (random() - 0.5);
    }
    return theta;
  }

  // Take one step of gradient descent with learning rate eta.
  const update = (theta, grad, eta) => theta.map((each, at) => each - eta * grad[at]); // K43, K44

  // Descend through one epoch of shuffled minibatches, with fresh noise at every step. `share` says
  // what a minibatch of some of all rows pays of the KL term.
  function epoch(net, theta, x, y, {prior, noise, eta, rows, samples, share}, random) {
    const N = y.length / net.at(-1), order = Array.from({length: N}, (_, at) => at);
    for (let last = N - 1; last > 0; last--) {
      const other = Math.floor(random() * (last + 1));
      [order[last], order[other]] = [order[other], order[last]];
    }
    const pick = (all, width, chosen) => Float64Array.from(
      chosen.flatMap(row => Array.from(all.subarray(row * width, (row + 1) * width))));
    for (let from = 0; from < N; from += rows) {
      const chosen = order.slice(from, from + rows);
      const eps = normals(random, samples * theta.length / 2); // K1
      const pi = share(chosen.length, N);                      // D6: these add up to 1
      const batch = [pick(x, net[0], chosen), pick(y, net.at(-1), chosen)];
      theta = update(theta, valueAndGrad(net, theta, eps, ...batch, prior, noise, pi).grad, eta);
    }
    return theta;
  }

  // Return mean, epistemic and total standard deviation of a new y, and the functions (S, B, K).
  function predict(net, theta, eps, x, noise) {
    const P = theta.length / 2, S = eps.length / P, w = new Float64Array(P), functions = [];
    const sigma = theta.subarray(P).map(softplus);             // K3
    for (let s = 0; s < S; s++) {
      for (let j = 0; j < P; j++) w[j] = theta[j] + sigma[j] * eps[s * P + j]; // K4
      functions.push(forward(net, w, x).f);
    }
    const mean = new Float64Array(functions[0].length), epistemic = mean.slice();
    for (let at = 0; at < mean.length; at++) {
      for (const f of functions) mean[at] += f[at] / S;
      for (const f of functions) epistemic[at] += (f[at] - mean[at]) ** 2 / (S - 1);
      epistemic[at] = Math.sqrt(epistemic[at]);                // D4: between functions
    }
    const total = epistemic.map(each => Math.hypot(each, noise)); // D4: and the noise of y
    return {mean, epistemic, total, functions};
  }

  return {LOG_2PI, softplus, sigmoid, layout, size, forward, vjp, valueAndGrad, uniforms, normals,
          init, update, epoch, predict};
})();
