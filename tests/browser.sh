#!/usr/bin/env bash
# tests/browser.sh BUILD: the page of tarn explore in a real browser without a screen: what its script draws, and what
# buttons, wheel, search and clicks do. Part of `ctest -C all`; skipped where there is no Chromium.
source tests/cli/lib.sh "$1"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "browser: skipped, there is no Chromium (Debian: apt-get install chromium)"; exit 77; }

# dom PAGE#ASKED: the page after its script has run, into $work/dom
dom() {
  last="the page $1"
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --virtual-time-budget=5000 \
    --dump-dom "file://$work/$1" >"$work/dom" 2>"$work/log" || { fail "$last: the browser fails"; tail -5 "$work/log"; }
}
has() { for word in "$@"; do grep -qF -- "$word" "$work/dom" || fail "$last: no $word"; done; }
drawn() { # COUNT: as many boxes
  local n
  n=$(sed -n '/<svg id="graph"/,/<\/svg>/p' "$work/dom" | grep -o '<g class="cls' | wc -l)
  [ "$n" = "$1" ] || fail "$last: $n boxes, expected $1"
}
at=bench/egraph
try 0 explore --free --rules $at/math.rules $at/math7.term --iters 4 --html "$work/m.html" --json
classes=$(value classes)
page "$work/m.html" "Stopped: iterations" '<polyline class="nodes"' "comm-add"
dom m.html
has "40 of $classes classes are shown." 'class="cls best"' 'class="pick"'
drawn 40
dom "m.html#show=all"
has "$classes of $classes classes are shown."
drawn "$classes"
dom "m.html#find=sqrt&open=0"
has "1 class matches" '<h3>Class #0' 'class="cls best found"' 'class="cls best open"'
dom "m.html#open=0&near=1"
few=$(sed -n '/<svg id="graph"/,/<\/svg>/p' "$work/dom" | grep -o '<g class="cls' | wc -l)
has "$few of $classes classes are shown." '<h3>Class #0'
[ "$few" -gt 1 ] && [ "$few" -lt "$classes" ] || fail "$last: $few boxes around one class"
# A smaller page says what it leaves out.
try 0 explore --free --rules $at/math.rules $at/math7.term --iters 4 --html "$work/s.html" --html-classes 50
dom "s.html#show=all"
has "50 of $classes classes are shown; this page holds 50 (tarn explore --html-classes 0 writes all)."

# As a hand would: a script at the end of the page does it and writes down what it sees.
cat >"$work/hand.html" <<'S'
<pre id="seen"></pre><script>
const say = (k, v) => { document.getElementById("seen").textContent += k + ": " + v + "\n"; };
const el = id => document.getElementById(id), boxes = () => document.querySelectorAll("#graph g[data-id]").length;
const box = () => el("graph").getAttribute("viewBox").split(" ").map(Number);
const text = () => el("panel").textContent;
el("more").click(); say("more", boxes());
el("all").click(); say("all", boxes()); say("disabled", el("all").disabled);
const before = box();
el("graph").dispatchEvent(new WheelEvent("wheel", {deltaY: -1, clientX: 100, clientY: 100, cancelable: true}));
say("nearer", box()[2] < before[2]);
el("out").click(); el("out").click(); say("farther", box()[2] > before[2]);
el("fit").click(); say("fit", box()[2] === before[2]);
el("find").value = "cos"; el("find").dispatchEvent(new Event("input"));
say("found", document.querySelectorAll("#graph g.found").length + " " + el("hits").textContent);
const press = (t, g, x) => g.dispatchEvent(new PointerEvent(t, {bubbles: true, clientX: x, clientY: 5}));
const many = [...document.querySelectorAll("#graph g[data-id]")].find(g => g.querySelectorAll("text").length > 4);
press("pointerdown", many, 5); press("pointerup", many, 5);
say("opened", text().includes("Class #" + many.dataset.id)); say("reasons", /by.*(comm|assoc|canon|analysis|zero|one)/.test(text()));
el("panel").querySelector("a[data-open]").click(); say("followed", !text().includes("Class #" + many.dataset.id + "\n") && text().startsWith("Class #"));
press("pointerdown", el("graph"), 50); press("pointermove", el("graph"), 90); press("pointerup", el("graph"), 90);
say("moved", box()[0] !== before[0]);
el("best").click(); say("plain", document.querySelectorAll("#graph g.best").length);
</script></body></html>
S
sed 's/<\/body><\/html>//' "$work/m.html" | cat - "$work/hand.html" >"$work/h.html"
dom h.html
has "more: 80" "all: $classes" "disabled: true" "nearer: true" "farther: true" "fit: true" "found: " "opened: true" "reasons: true" "followed: true" \
  "moved: true" "plain: 0"
! grep -q "found: 0" "$work/dom" || fail "nothing was found"

# Typed terms have types; names cannot break out of the page.
echo '(compute reduceSum (transpose (1 0) (input "x</script><b>" ((4 8) ()) f32)))' >"$work/t.term"
try 0 explore "$work/t.term" --html "$work/t.html"
dom "t.html#open=0"
has "f32 ((4 8) ())" "classes are shown." "&lt;/script&gt;"

# The page of a compile: no text upon text, none cut, all at 4.5 to 1 of its ground, on a phone and on a desk, light and dark.
cat >"$work/texts.html" <<'S'
<script>
const texts = [...document.querySelectorAll("svg text")].map(t => [t.textContent, t.getBoundingClientRect()]), wrong = [];
for (const [i, [a, p]] of texts.entries()) {
  if (p.left < -1 || p.right > innerWidth + 1) wrong.push("cut: " + a);
  for (const [b, q] of texts.slice(0, i))
    if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2) wrong.push(a + " upon " + b);
}
const part = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => part(v / 255)); return .2126 * r + .7152 * g + .0722 * b; };
const ground = light(getComputedStyle(document.body).backgroundColor);
for (const e of document.querySelectorAll("p,td,th,h1,h2,pre,summary,text")) {
  const s = getComputedStyle(e), l = light(e.tagName == "text" ? s.fill : s.color);
  if ((Math.max(l, ground) + .05) / (Math.min(l, ground) + .05) < 4.5) wrong.push("faint: " + e.textContent.slice(0, 30));
}
if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the window");
document.documentElement.setAttribute("data-seen", texts.length + " texts, wrong: " + (wrong.join("; ") || "nothing"));
</script>
S
try 0 compile "$digits" --shape n=1 --threads 1 -o "$work/digits" --explain "$work/chain"
try 0 report "$work/digits" --threads 1 --chain "$work/chain" -o "$work/report.html"
cat "$work/report.html" "$work/texts.html" >"$work/seen.html"
for wide in 480 1400; do
  for dark in 0 1; do
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=$wide,2000 \
      --blink-settings=preferredColorScheme=$dark --dump-dom "file://$work/seen.html" >"$work/dom" 2>"$work/log"
    last="the page of a report, $wide pixels wide"
    grep -qE 'data-seen="[1-9][0-9]* texts, wrong: nothing"' "$work/dom" || fail "$last: $(grep -o 'data-seen="[^"]*"' "$work/dom")"
  done
done
finish
