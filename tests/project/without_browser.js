// What test_playground.py asks of a page without a browser: its settings after each address.
// The arguments are JSON: the page's scripts in their order, and addresses such as "#preset=gap".
"use strict";
const fs = require("fs"), vm = require("vm");

// Return what stands for any object of a document: all of it can be read, called and set.
const anything = () => new Proxy(function () {}, {
  get: (parts, name) => {
    if (name === Symbol.toPrimitive) return () => 100;
    if (name === Symbol.iterator) return () => [anything(), anything()].values();
    return Object.hasOwn(parts, name) && name !== "prototype" ? parts[name]
      : parts[name] = anything();
  },
  apply: anything,
  construct: anything,
});
const NAMES = ["window", "document", "localStorage", "history", "performance", "matchMedia",
               "getComputedStyle", "requestAnimationFrame", "ResizeObserver", "Option"];

function settings(source, address) {
  const {search, hash} = new URL(`file:///page${address}`);
  const around = Object.fromEntries(NAMES.map(name => [name, anything()]));
  try {
    return JSON.parse(vm.runInNewContext(
      `${source}\nJSON.stringify(settings)`, {...around, location: {search, hash}, URLSearchParams}));
  } catch (error) {
    return String(error);
  }
}

const [files, addresses] = JSON.parse(process.argv[2]);
const source = files.map(file => fs.readFileSync(file, "utf8")).join("\n");
console.log(JSON.stringify(addresses.map(address => settings(source, address))));
