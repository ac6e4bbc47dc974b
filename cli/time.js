"use strict";
/* The drawings over time of a page of tarn sim: all of them show the same part of it. */
(() => {
  const all = [...document.querySelectorAll("svg.time")], span = document.getElementById("span");
  const WIDE = 10000, cycles = Number(span.dataset.cycles);
  let from = 0, wide = WIDE, held = null;
  function show() {
    wide = Math.min(WIDE, Math.max(WIDE / 5000, wide));
    from = Math.min(WIDE - wide, Math.max(0, from));
    for (const s of all) s.setAttribute("viewBox", `${from} 0 ${wide} ${s.viewBox.baseVal.height}`);
    span.textContent = `${Math.round(from / WIDE * cycles)} to ${Math.round((from + wide) / WIDE * cycles)}`;
  }
  for (const s of all) {
    s.addEventListener("wheel", e => {
      const share = e.offsetX / s.clientWidth, times = Math.exp(e.deltaY / 400);
      e.preventDefault();
      from += share * wide, wide = Math.min(WIDE, wide * times), from -= share * wide;
      show();
    }, {passive: false});
    s.addEventListener("pointerdown", e => (held = e.clientX, s.setPointerCapture(e.pointerId)));
    s.addEventListener("pointermove", e => {
      if (held === null) return;
      from -= (e.clientX - held) / s.clientWidth * wide, held = e.clientX;
      show();
    });
    s.addEventListener("pointerup", () => held = null);
    s.addEventListener("dblclick", () => (from = 0, wide = WIDE, show()));
  }
})();
