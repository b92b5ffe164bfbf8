// Formulas and tables do not break: what is wider than the page becomes smaller before it is printed.
"use strict";

const SMALLEST = 0.55;  // of the letters around it

// The width of an element with all that is in it: a formula's own box may end before.
function wholeWidth(element) {
  const right = Math.max(...[element, ...element.querySelectorAll("*")]
    .map(inner => inner.getBoundingClientRect().right));
  return right - element.getBoundingClientRect().left;
}

function shrink(formula, around) {
  const room = around.getBoundingClientRect().width;
  const needed = wholeWidth(formula);
  if (needed <= room) return;
  const size = parseFloat(getComputedStyle(formula).fontSize);
  formula.style.fontSize = `${size * Math.max(SMALLEST, 0.97 * room / needed)}px`;
}

// Chromium places the bar of a root by the font with which it was first laid out, until its size changes.
function layOutAgain() {
  for (const formula of document.querySelectorAll("math")) formula.style.fontSize = "1.1em";
}

function fit() {
  layOutAgain();
  for (const block of document.querySelectorAll("div.math")) {
    for (const formula of block.querySelectorAll("math")) shrink(formula, block);
  }
  for (const table of document.querySelectorAll("table")) {
    for (let size = 8.5; size > 6 && wholeWidth(table) > document.body.clientWidth; size -= 0.5) {
      table.style.fontSize = `${size}pt`;
    }
    if (wholeWidth(table) > document.body.clientWidth) table.classList.add("wide");
  }
  for (const formula of document.querySelectorAll("span.math > math")) {
    const around = formula.closest("p, li, td, th, dd, h1, h2, h3, h4, summary");
    if (around) shrink(formula, around);
  }
}

// What stands out of the page at its right, and what is missing: none of it may be.
function cut() {
  const right = document.body.getBoundingClientRect().right + 1;
  const out = [...document.querySelectorAll("body *")]
    .filter(element => element.getBoundingClientRect().right > right)
    .map(element => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`);
  const pictures = [...document.images].filter(image => !image.complete || !image.naturalWidth);
  const formulas = [...document.querySelectorAll(".math")].filter(math => !math.querySelector("math"));
  return [...out, ...pictures.map(image => `picture ${image.src}`), ...formulas.map(() => "formula")];
}

// make.py reads in the title of the PDF what is cut.
function prepare() {
  fit();
  const found = cut();
  if (found.length) document.title = `cut: ${found.join(", ")}`;
}

addEventListener("load", () =>
  document.fonts.load("16px formulas").then(() => document.fonts.ready).then(prepare));
