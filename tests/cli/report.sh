#!/usr/bin/env bash
# tarn report and compile --html: a page of its own, with kernels, memory, rewrites and, where it can be run, times.
source tests/cli/lib.sh "$1"

# whole PAGE: HTML whose elements close, which fetches nothing and runs nothing
whole() {
  python3 - "$1" <<'P' || fail "$last: the page is not whole"
import sys
from html.parser import HTMLParser

class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not any((v or "").startswith(("http", "//")) for _, v in attrs), attrs
        if tag != "meta":
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

p = Page()
p.feed(open(sys.argv[1], encoding="utf-8").read())
assert not p.open, p.open
P
}
holds() { # PAGE WORDS…
  local page=$1
  shift
  for word in "$@"; do grep -qF "$word" "$page" || fail "$last: no $word"; done
}
try 0 compile "$digits" --shape n=1 --threads 1 -o "$work/d" --explain "$work/chain" --html "$work/c.html"
whole "$work/c.html"
holds "$work/c.html" "Kernels" "Memory over time" "Rewrites" "step by step" "k0_0.Conv" "inline" "predicted"
! grep -q Roofline "$work/c.html" || fail "$last: something was measured"
[ "$(grep -c '<rect' "$work/c.html")" = "$("$json" kernels <"$work/d/report.json")" ] || fail "$last: a bar of memory for each kernel"
try 0 report "$work/d" --threads 1 --repeat 3 --chain "$work/chain"
whole "$work/d/report.html"
holds "$work/d/report.html" "Roofline" "Timeline" "measured, median" "step by step"
try 0 report "$work/d" --plain -o "$work/plain.html"
! grep -qE "Roofline|step by step" "$work/plain.html" || fail "$last: more than was asked for"
try 0 report "$digits" --shape n=2 --plain -o "$work/model.html"
whole "$work/model.html"
refused 2 html "one size" -- compile "$digits" --shape n=1,2 -o "$work/sizes" --html "$work/s.html"
try 0 compile "$digits" --shape n=1,2 --threads 1 -o "$work/sizes"
try 0 report "$work/sizes" && whole "$work/sizes/report.html"
refused 2 "-o says" -- report "$digits" --shape n=1
refused 2 usage -- report
refused 3 nowhere -- report "$work/nowhere"
finish
