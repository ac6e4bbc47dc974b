"use strict";
/* The e-graph of a page of tarn explore: classes as boxes, arrows from e-nodes to the classes of their operands. What is shown can be
 * said behind the # of the address: #show=60&find=pow&open=12&near=1 */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = id => document.getElementById(id);
  const svg = at("graph"), byId = new Map(data.classes.map(c => [c.id, c]));
  const esc = s => String(s).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
  const short = s => s.length > 28 ? s.slice(0, 27) + "…" : s;
  const ROWS = 6, ROW = 16, W = 190, GAPX = 36, GAPY = 60, CLOSE = 14, WIDEST = 1600;
  let shown = Math.min(40, data.classes.length), found = new Set(), pulled = new Set(), opened = null, box = {};
  let view = {x: 0, y: 0, w: 800, h: 600}, full = view;
  const users = new Map(data.classes.map(c => [c.id, []]));
  for (const c of data.classes)
    for (const k of new Set(c.nodes.flatMap(n => n.kids))) if (users.has(k)) users.get(k).push(c.id);

  function visible() {
    const c = at("near").checked && byId.get(opened);
    const near = c && new Set([opened, ...users.get(opened), ...c.nodes.flatMap(n => n.kids)]);
    return near ? data.classes.filter(c => near.has(c.id)) : data.classes.filter((c, i) => i < shown || pulled.has(c.id));
  }
  const high = c => ROW * (Math.min(c.nodes.length, ROWS + 1) + 1) + 8;
  /* So many classes side by side that the whole is about as wide as the frame is. */
  function columns(list) {
    const r = svg.getBoundingClientRect(), tall = list.reduce((s, c) => s + high(c) + CLOSE, 0);
    return Math.max(4, Math.ceil(Math.sqrt(tall / (W + GAPX) * (r.width / r.height || 1.5))));
  }
  /* Each class one layer below the first that needs it; in a layer, near those above; a wide layer takes several rows. */
  function layout(list) {
    const here = new Set(list.map(c => c.id)), level = new Map(), queue = [];
    for (const c of list)
      if (data.roots.includes(c.id)) level.set(c.id, 0), queue.push(c);
    const walk = () => {
      for (let i = 0; i < queue.length; i++)
        for (const n of queue[i].nodes)
          for (const k of n.kids)
            if (here.has(k) && !level.has(k)) level.set(k, level.get(queue[i].id) + 1), queue.push(byId.get(k));
    };
    walk();
    for (const c of list)
      if (!level.has(c.id)) level.set(c.id, 0), queue.push(c), walk();
    const layers = [];
    for (const c of list) (layers[level.get(c.id)] ||= []).push(c);
    const place = new Map(), most = columns(list);
    let y = 0;
    box = {};
    for (const layer of layers) {
      if (!layer) continue;
      for (const c of layer) {
        const above = users.get(c.id).filter(p => here.has(p) && level.get(p) < level.get(c.id));
        place.set(c.id, above.length ? above.reduce((s, p) => s + box[p].x, 0) / above.length : place.size);
      }
      layer.sort((a, b) => place.get(a.id) - place.get(b.id) || a.id - b.id);
      const rows = Math.ceil(layer.length / most);
      for (let r = 0; r < rows; r++) { /* every rows-th, so that each stays below those above it */
        const row = layer.filter((c, i) => i % rows === r);
        row.forEach((c, i) => box[c.id] = {x: (i - (row.length - 1) / 2) * (W + GAPX), y, h: high(c)});
        y += Math.max(...row.map(high)) + (r + 1 < rows ? CLOSE : GAPY);
      }
    }
  }
  function draw() {
    const list = visible();
    layout(list);
    let edges = "", boxes = "", x0 = 0, x1 = 0, y1 = 0;
    for (const c of list) {
      const b = box[c.id], left = b.x - W / 2;
      x0 = Math.min(x0, left), x1 = Math.max(x1, left + W), y1 = Math.max(y1, b.y + b.h);
      const kind = ["cls", c.chosen !== undefined && at("best").checked ? "best" : "", found.has(c.id) ? "found" : "", opened === c.id ? "open" : ""];
      boxes += `<g class="${kind.filter(Boolean).join(" ")}" data-id="${c.id}"><rect x="${left}" y="${b.y}" width="${W}" height="${b.h}" rx="5"/>` +
        `<text class="id" x="${left + 6}" y="${b.y + ROW - 2}">#${c.id} ${esc(short(c.facts || ""))}</text>`;
      c.nodes.slice(0, ROWS).forEach((n, i) => {
        const y = b.y + ROW * (i + 2) - 3;
        boxes += `<text class="${c.chosen === i ? "pick" : ""}" x="${left + 12}" y="${y}">${esc(short(n.op))}</text>`;
        n.kids.forEach((k, j) => {
          const to = box[k];
          if (!to) return;
          const sx = left + W - 10 - 8 * (n.kids.length - j), sy = y - 4, up = to.y <= b.y ? to.y + to.h : to.y;
          edges += `<path class="${c.chosen === i ? "pick" : ""}" d="M${sx} ${sy}C${sx} ${sy + 40} ${to.x} ${up - 40} ${to.x} ${up}"/>`;
          boxes += `<circle cx="${sx}" cy="${sy}" r="2"/>`;
        });
      });
      if (c.nodes.length > ROWS) boxes += `<text class="more" x="${left + 12}" y="${b.y + ROW * (ROWS + 2) - 3}">and ${c.nodes.length - ROWS} more</text>`;
      boxes += "</g>";
    }
    svg.innerHTML = edges + boxes;
    full = {x: x0 - 20, y: -20, w: x1 - x0 + 40, h: y1 + 40};
    at("count").textContent = `${list.length} of ${data.total} classes are shown` +
      (data.classes.length < data.total ? `; this page holds ${data.classes.length} (tarn explore --html-classes 0 writes all)` : "") + ".";
    at("more").disabled = at("all").disabled = list.length >= data.classes.length;
  }
  function look(v) {
    view = v;
    svg.setAttribute("viewBox", `${v.x} ${v.y} ${v.w} ${v.h}`);
  }
  /* All of it, as long as that can be read; else the beginning. */
  function start() {
    const r = svg.getBoundingClientRect(), w = Math.min(full.w, WIDEST), h = w * r.height / r.width;
    look(full.w <= WIDEST && full.h <= h ? full : {x: full.x + (full.w - w) / 2, y: full.y, w, h});
  }
  function centre(id) {
    const b = box[id], inside = b.x > view.x && b.x < view.x + view.w && b.y > view.y && b.y < view.y + view.h;
    if (!inside || view.w > 2 * WIDEST) {
      const w = Math.min(view.w, WIDEST), h = w * view.h / view.w;
      look({x: b.x - w / 2, y: b.y + b.h / 2 - h / 2, w, h});
    }
  }
  function zoom(by, px, py) {
    const r = svg.getBoundingClientRect(), fx = px === undefined ? .5 : (px - r.left) / r.width, fy = py === undefined ? .5 : (py - r.top) / r.height;
    look({x: view.x + view.w * fx * (1 - by), y: view.y + view.h * fy * (1 - by), w: view.w * by, h: view.h * by});
  }
  const link = k => byId.has(k) ? `<a href="#" data-open="${k}">#${k}</a>` : `#${k} (not in this page)`;
  function open(id) {
    const c = byId.get(id);
    if (!c) return;
    opened = id;
    if (!box[id]) pulled.add(id);
    draw();
    if (at("near").checked) look(full);
    else centre(id);
    const rows = c.nodes.map((n, i) => `<tr${c.chosen === i ? ' class="pick"' : ""}><td>${esc(n.op)}</td><td>${n.kids.map(link).join(" ")}</td><td>${n.why === undefined ? "" : esc(n.why)}</td></tr>`);
    at("panel").innerHTML = `<h3>Class #${id}</h3><p>${esc(c.facts || "")}</p><p>${c.nodes.length} e-nodes${c.left ? " of " + (c.nodes.length + c.left) : ""}; ` +
      `used by ${users.get(id).map(link).join(" ") || "none"}.</p>` +
      `<table><tr><th>e-node</th><th>operands</th><th>equal to the first by</th></tr>${rows.join("")}</table>`;
  }
  function find(text) {
    text = text.trim().toLowerCase();
    found = new Set(!text ? [] : data.classes.filter(c => "#" + c.id === text || c.nodes.some(n => n.op.toLowerCase().includes(text))).map(c => c.id));
    pulled = new Set([...found].slice(0, 60));
    at("hits").textContent = text ? (found.size === 1 ? "1 class matches" : `${found.size} classes match`) + (found.size > 60 ? "; 60 of them were added" : "") : "";
    draw();
    if (found.size && box[[...found][0]]) centre([...found][0]);
  }
  at("more").onclick = () => { shown = Math.min(shown + 40, data.classes.length); draw(); look(full); };
  at("all").onclick = () => { shown = data.classes.length; draw(); look(full); };
  at("fit").onclick = () => look(full);
  at("in").onclick = () => zoom(.8);
  at("out").onclick = () => zoom(1.25);
  at("best").onchange = draw;
  at("near").onchange = () => { draw(); if (opened !== null) at("near").checked ? look(full) : centre(opened); };
  at("find").oninput = e => find(e.target.value);
  svg.onwheel = e => { e.preventDefault(); zoom(e.deltaY < 0 ? .85 : 1.18, e.clientX, e.clientY); };
  let drag = null;
  svg.onpointerdown = e => { drag = {x: e.clientX, y: e.clientY, v: view, far: false}; };
  svg.onpointermove = e => {
    if (!drag) return;
    const r = svg.getBoundingClientRect(), k = Math.max(drag.v.w / r.width, drag.v.h / r.height), dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) drag.far = true;
    look({...drag.v, x: drag.v.x - dx * k, y: drag.v.y - dy * k});
  };
  svg.onpointerup = e => {
    const g = e.target.closest && e.target.closest("g[data-id]");
    if (g && drag && !drag.far) open(+g.dataset.id);
    drag = null;
  };
  at("panel").onclick = e => {
    if (e.target.dataset.open === undefined) return;
    e.preventDefault();
    open(+e.target.dataset.open);
  };
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has("show")) shown = asked.get("show") === "all" ? data.classes.length : Math.min(+asked.get("show") || shown, data.classes.length);
  draw();
  start();
  if (asked.has("find")) at("find").value = asked.get("find"), find(asked.get("find"));
  at("near").checked = asked.has("near");
  if (asked.has("open")) open(+asked.get("open"));
})();
