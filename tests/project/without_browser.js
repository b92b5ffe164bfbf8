// What test_playground.py asks of a page without a browser: what an expression is after each address.
// The arguments are JSON: the page's scripts in their order, addresses such as "#preset=gap", and the
// expression, in which `notice` is what the page says of the address.
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
               "getComputedStyle", "requestAnimationFrame", "cancelAnimationFrame", "ResizeObserver", "Option"];

function answer(source, address, expression) {
  const {search, hash} = new URL(`file:///page${address}`);
  const around = Object.fromEntries(NAMES.map(name => [name, anything()])), elements = {};
  around.document.getElementById = id => elements[id] ??= anything();
  const code = `${source}
    const notice = document.getElementById("notice").textContent;
    JSON.stringify(${expression})`;
  try {
    return JSON.parse(vm.runInNewContext(
      code, {...around, location: {search, hash}, URLSearchParams}, {timeout: 20000}));
  } catch (error) {
    return String(error);
  }
}

const [files, addresses, expression] = JSON.parse(process.argv[2]);
const source = files.map(file => fs.readFileSync(file, "utf8")).join("\n");
console.log(JSON.stringify(addresses.map(address => answer(source, address, expression))));
