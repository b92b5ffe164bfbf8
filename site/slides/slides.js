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
