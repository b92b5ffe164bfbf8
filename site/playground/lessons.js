// What the page begins with, what can be turned, and the lessons: a preset each.
"use strict";

const DATA = {
  parabola: {title: "the spring, 100 points", points: PARABOLA},
  gap: {title: "with a gap", points: PARABOLA.filter(([x]) => Math.abs(x) > 0.8)},
  three: {title: "three points", points: [[-1.5, 2.4], [0.2, 0], [1.4, 1.8]]},
  none: {title: "none", points: []},
};

const MISTAKES = {
  none: {title: "none"},
  share: {title: "each minibatch pays the whole KL"},
  k18: {title: "K18 with its printed sign"},
  twice: {title: "noise counted twice"},
};

const START = {
  prior: 1, noise: 0.3, hidden: 20, samples: 1, beta: 1, rho: -2, eta: 0.002, rows: 10, speed: 10,
  data: "parabola", mistake: "none",
};

const fixed = digits => value => value.toFixed(digits).replace("-", "−");

const SLIDERS = [
  {name: "prior", title: "standard deviation of the prior",
   choices: [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 2.5, 3, 5, 10]},
  {name: "noise", title: "standard deviation of the noise",
   choices: [0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3]},
  {name: "hidden", title: "hidden units", choices: [1, 2, 3, 5, 10, 20, 50]},
  {name: "samples", title: "S, networks drawn a step", choices: [1, 2, 4, 8, 16, 32]},
  {name: "beta", title: "factor on the KL", choices: [0, 0.01, 0.1, 0.3, 1, 3, 10]},
  {name: "rho", title: "ρ at the start", choices: Array.from({length: 29}, (_, at) => -6 + at / 4),
   say: rho => `${fixed(2)(rho)}, σ = ${shown(bbb.softplus(rho), 2)}`},
  {name: "eta", title: "learning rate", say: String,
   choices: [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01]},
  {name: "rows", title: "rows a step", choices: [1, 2, 5, 10, 20, 50, 100]},
  {name: "speed", title: "speed, steps a frame", choices: [10, 50, 200]},
];

// A lesson each: what is set, where it stops, the slider that a frame of the book keeps, what to
// see, and the tag of its page.
const PRESETS = {
  band: {
    title: "The first band", until: 300, turn: "noise", tag: "k4",
    text: `The band opens where the data end. Not by enough: a mean field trusts its straight lines
      too much.`,
  },
  report: {
    title: "A σ that is not learned", until: 300, rho: -5, turn: "speed", tag: "k30",
    text: `The report starts at ρ = −5. Each epoch then adds the learning rate to ρ, whatever the
      data say: in K30 the width outweighs the rest. Raise the speed and go on: after some 2,000
      epochs the data speak.`,
  },
  gap: {
    title: "A gap, bridged too surely", until: 1000, data: "gap", speed: 50, turn: "prior",
    tag: "d8",
    text: `No points between −0.8 and 0.8. The weights of a mean field are independent: they cannot
      agree to be sure at the data and undecided between. At x = 0 functions spread by 0.04; by 0.53
      under the exact posterior, which is dotted.`,
  },
  narrow: {
    title: "Prior too narrow", until: 300, prior: 0.1, turn: "prior", tag: "k21",
    text: `A prior of 0.1 pulls each weight to 0 with 100 times the force of a prior of 1: see K21.
      The curve cannot bend, a fifth of the points and more are outside the band, and F is about
      three times as high.`,
  },
  share: {
    title: "The forgotten 1/N", until: 300, mistake: "share", rows: 1, turn: "mistake", tag: "d6",
    text: `Every step pays the whole KL, 100 times an epoch: q falls back to the prior, as if the
      data said 100 times less. Set the mistake to none.`,
  },
  k18: {
    title: "The sign of K18", until: 1000, prior: 2.5, mistake: "k18", speed: 50, turn: "prior",
    tag: "k18",
    text: `As printed, F has −log σ<sub>data</sub> where it needs a plus. The gradient does not
      notice. But with a prior of 2.5 and 61 weights the printed F is 2 · 61 · log 2.5 = 112 nats
      too low.`,
  },
  twice: {
    title: "Noise counted twice", until: 300, mistake: "twice", turn: "mistake", tag: "d4",
    text: `Variances of functions and noise add. Whoever adds noise to the functions, and then its
      variance again, draws a band √2 times too wide where data are dense.`,
  },
  one: {
    title: "Noise assumed, not learned", until: 300, noise: 1, turn: "noise", tag: "k14",
    text: `The report assumes noise of 1; these points scatter by 0.3. Every point is inside the
      band, and the fit need not come near them.`,
  },
  samples: {
    title: "One draw or many", until: 300, samples: 1, turn: "samples", tag: "r3",
    text: `A step sees one network. The gradient is right on average: watch its ticks jump around
      the bars, and choose S = 32.`,
  },
  cold: {
    title: "A factor on the KL", until: 1000, beta: 0.1, speed: 50, turn: "beta", tag: "d24",
    text: `With a tenth of the KL, q is that of someone who has seen the data ten times: functions
      come closer together. With 0 nothing holds q open.`,
  },
  units: {
    title: "Too small a network", until: 1000, hidden: 1, speed: 50, turn: "hidden", tag: "m21",
    text: `One hidden unit: F says how bad it is. Choose 2, 10, 50, and compare F: it is lowest
      where the network is large enough, not where it is largest.`,
  },
  three: {
    title: "Three points", until: 3000, data: "three", speed: 50, turn: "prior", tag: "k5",
    text: `Three points leave much open, and the prior decides. Add points, and see the band
      close.`,
  },
  away: {
    title: "Steps too large", until: 300, eta: 0.01, turn: "eta", tag: "k43",
    text: `With this rate the steps grow without bound. Halve it until they do not.`,
  },
};
