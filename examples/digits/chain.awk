# Shows the first lemma of a proof in which an epilogue was fused and more happened besides: what the kernel computes (its
# operands are $0, $1…) as the model has it, and after each rule.

# The function of a kernel: what follows its dims.
function body(text,    at, i, depth, c) {
  if (match(text, /\(nest ![0-9]+/)) return kernel[substr(text, RSTART + 6, RLENGTH - 6)]
  at = match(text, /\((map|epi|red) /)
  if (!at) return text
  for (i = at; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c == "(") depth++
    if (c == ")" && --depth == 0) break
  }
  return substr(text, at, i - at + 1)
}
function show(    i) {
  done = 1
  printf "  %-18s %s\n", "the model", node[from[1]]
  for (i = 1; i <= n; i++) printf "  = %-16s %s\n", rule[i], node[to[i]]
  exit
}
$1 != "(step" && wanted && n > 2 { show() }
$1 == "(nest" { kernel[$2] = body(substr($0, index($0, $3))) }
$1 == "(node" { node[$2] = body(substr($0, index($0, $3))) }
$1 == "(lemma" { n = 0; wanted = 0 }
$1 == "(step" && $3 == "rule" {
  gsub(/\)/, "", $7)
  n++
  rule[n] = $4; from[n] = $6; to[n] = $7
  if ($4 == "epilogue") wanted = 1
}
END { if (wanted && !done) show() }
