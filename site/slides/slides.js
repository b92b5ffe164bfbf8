// The version of 45 minutes: ?short leaves out the slides whose notes say so.
"use strict";

if (new URLSearchParams(location.search).has("short")) {
  for (const note of document.querySelectorAll("aside.notes")) {
    if (/^\s*\d+ min, only in the long version\./.test(note.textContent)) {
      const slide = note.parentElement, stack = slide.parentElement;
      slide.remove();
      if (!stack.querySelector("section")) stack.remove();
    }
  }
}

// Chromium places the bar of a root by the font with which it was first laid out, until its size changes.
document.fonts.load("16px formulas").then(() => {
  for (const formula of document.querySelectorAll("math")) formula.style.fontSize = "1.18em";
});
