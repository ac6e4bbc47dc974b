# Shows the first lemma of a proof in which an epilogue was fused, from the model's side to the program's: what each
# kernel computes (its operands are $0, $1…), and the rule that leads to the next.

# The function of a kernel: what follows its dims.
function body(text,    at, i, depth, c) {
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
  printf "  %-13s %s\n", "the model", node[right[n]]
  for (i = n; i >= 1; i--) printf "  = %-11s %s\n", rule[i], node[left[i]]
  exit
}
$1 != "(step" && wanted { show() }
$1 == "(node" { node[$2] = body($0) }
$1 == "(lemma" { n = 0 }
$1 == "(step" && $3 == "rule" {
  n++
  rule[n] = $4; left[n] = $6; right[n] = $7
  gsub(/\)/, "", right[n])
  if ($4 == "epilogue") wanted = 1
}
END { if (wanted && !done) show() }
