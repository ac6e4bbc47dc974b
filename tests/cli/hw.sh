#!/usr/bin/env bash
# hw show, check and derive on every shipped description; derived rules saved, loaded and checked; wrong descriptions.
source tests/cli/lib.sh "$1"

for file in hw/*.hw; do
  name=$(basename "$file" .hw)
  try 0 hw check "$name"
  grep -q "^$name: ok, " "$work/out" || fail "hw check $name says $(cat "$work/out")"
  try 0 hw show "$name" && cp "$work/out" "$work/shown.hw"
  try 0 hw show "$work/shown.hw"
  cmp "$work/out" "$work/shown.hw" || fail "what hw show $name prints reads as something else"
  try 0 hw derive "$name" && cp "$work/out" "$work/$name.rules"
  grep -q "^(rule $name\." "$work/$name.rules" || fail "hw derive $name gives no rule"
  try 0 rules list "$work/$name.rules" --json
  is 'rules.#' "$(grep -c '^(rule ' "$work/$name.rules")"
done
for rule in vta-pynq.gemm-tiles vta-pynq.gemm-tiles-onto gemmini-default.matmul-tiles systolic-f32.array-tiles x86-64-v3.fma-pieces; do
  grep -q "^(rule $rule\$" "$work/${rule%%.*}.rules" || fail "there is no rule $rule"
done
try 0 hw derive host
for name in vta-pynq vta-hls-timing gemmini-default systolic-f32; do # all hold, and need all of their conditions
  for how in '' --mutate; do
    try 0 rules check --hw $name --samples 20 $how --json
    is ok true
    is rules.0.family mapping
  done
done

# Coarse units: what they compute is printed as nests, which the kernel command plans.
try 0 hw derive tests/data/hw/coarse.hw && cp "$work/out" "$work/nests"
for unit in conv pool attend cell; do
  try 0 kernel "$(sed -n "s/^; $unit computes //p" "$work/nests" | tail -1)" --hw tests/data/hw/coarse.hw
  grep -q "(unit $unit " "$work/out" || fail "a nest of $unit is planned without it"
done
try 0 hw derive tests/data/hw/coarse.hw --json
is nests.# "$(grep -c '^; .* computes' "$work/nests")"

# Wrong descriptions: one line with the place, exit 3, from check and from derive.
machine() { # FORMS of the intrinsic, on line 3
  printf '(hw m (kind dsa) (clock 1e8)\n (memory dram (read 1) (write 1))\n (intrinsic u %s))\n' "$1" >"$work/m.hw"
}
bad() { # PLACE WORDS… -- FORMS
  local place=$1 words=()
  shift
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  machine "$2"
  for action in check derive; do refused 3 "m.hw:$place:" "${words[@]}" -- hw $action "$work/m.hw"; done
}
ops='(operand a (type f32) (dims 2 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) (dims 2 4))'
machine "(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) $ops" && try 0 hw check "$work/m.hw"
bad 3:24 'dims differ' -- "(meaning (cartProd (access 1 ?a) (access 0 ?b))) $ops"
bad 3:75 '?q is no operand' -- "(meaning (compute dotProd (cartProd (access 0 ?a) (access 1 ?q)))) $ops"
bad 3:24 'result y is f32 (2 4)' -- "(meaning (compute dotProd (cartProd (access 1 ?b) (access 1 ?a)))) $ops"
bad 3:24 'does not read operand b' -- "(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?a)))) $ops"
bad 3:37 'positive integers' -- '(operand a (type f32) (dims 2 0)) (operand y (type f32)) (meaning ?a)'
bad 3:94 'no condition' -- "(meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b)))) (constraint (+ ?m ?k)) $ops"
refused 3 'no such description' vta-pynq -- hw check vta
refused 2 'hw show|check|derive' -- hw burn host
try 0 hw show gemmini-default --json
is kind dsa
try 0 hw check x86-64-v3 --json
is ok true
is name x86-64-v3
try 0 hw derive gemmini-default --json
is rules.0.level surface
# Other formats: VTA's configuration gives the shipped description, what does not fit the encoding is refused.
import=tests/corpus/import
try 0 hw show vta-pynq && cp "$work/out" "$work/vta"
try 0 hw import vta $import/vta.json && cp "$work/out" "$work/vta.hw"
try 0 hw show "$work/vta.hw" && cmp "$work/out" "$work/vta" || fail "vta.json gives another machine than vta-pynq"
try 0 hw show gemmini-default && sed 's/gemmini-default/gemmini/' "$work/out" >"$work/gemmini"
try 0 hw import gemmini $import/gemmini_params && cp "$work/out" "$work/gemmini_paramsw"
try 0 hw show "$work/gemmini_paramsw" && cmp "$work/out" "$work/gemmini" || fail "gemmini_params gives another machine"
refused 3 'wide.json' 'micro-op has 32' 'these are 35' -- hw import vta $import/wide.json
refused 3 'gemmini_params' 'no JSON' -- hw import vta $import/gemmini_params
refused 3 '#define DIM' -- hw import gemmini $import/vta.json
refused 2 'vta or gemmini' -- hw import tpu $import/vta.json
refused 2 'timeloop' -- hw export yaml vta-pynq
try 0 hw export timeloop vta-pynq
for line in 'version: 0.4' 'depth: 1024' 'width: 2048' 'spatial: {meshX: 256}' 'keep: \[Weights\]'; do
  grep -q "$line" "$work/out" || fail "hw export timeloop: no $line"
done
# Is what it prints the shape of an architecture of Timeloop 0.4: a tree of containers and components, each memory with
# whole words and datawidths, outermost first, a unit that computes last?
timeloop() {
  /usr/bin/python3 - "$1" "$work/out" <<'PYTHON' || fail "$last is no architecture of Timeloop"
import sys
import yaml

nodes = {"!Container": dict, "!Component": dict}
for tag in nodes:
    yaml.SafeLoader.add_constructor(tag, lambda loader, node, tag=tag: dict(loader.construct_mapping(node, deep=True), tag=tag))
spec = yaml.safe_load(open(sys.argv[2]))
arch = spec["architecture"]
assert list(spec) == ["architecture"] and arch["version"] == 0.4, spec
first, *rest = arch["nodes"]
assert first["tag"] == "!Container", first
names = [n["name"] for n in arch["nodes"]]
assert len(set(names)) == len(names), names
kept = set()
assert rest[0]["class"] == "DRAM", rest[0]
for n in rest:
    a = n["attributes"]
    assert n["tag"] == "!Component" and a["datawidth"] > 0, n
    if n["class"] not in ("DRAM", "SRAM"):
        assert n is rest[-1] and n["class"] in ("intmac", "fpmac") and n["spatial"]["meshX"] > 0, n
        continue
    assert a["width"] % a["datawidth"] == 0 and a["read_bandwidth"] > 0 and a["write_bandwidth"] > 0, n
    if n["class"] == "SRAM":
        assert a["depth"] > 0 and a["n_banks"] > 0, n
        space = n["constraints"]["dataspace"]
        assert sorted(space["keep"] + space["bypass"]) == ["Inputs", "Outputs", "Weights"], n
        kept |= set(space["keep"])
assert rest[-1]["class"] in ("intmac", "fpmac"), rest[-1]
assert kept == {"Inputs", "Outputs", "Weights"}, kept
PYTHON
}
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
  for machine in vta-pynq vta-hls-timing gemmini-default systolic-f32; do
    try 0 hw export timeloop $machine
    timeloop $machine
  done
fi
refused 3 'no such description' -- hw export timeloop vta
try 0 hw peaks --threads 1 --json
is threads 1
for key in flops start levels.0.name levels.0.read levels.0.write levels.0.copy levels.1.capacity \
  slots rates.0.bytes rates.0.read rates.0.write rates.0.copy functions.exp; do value $key >/dev/null; done

# A convolution is weighed both ways: reading its windows in place, and written out first.
try 0 compile $digits -o "$work/d" --shape n=1 --threads 1 --emit ll --json
[ "$(value 'im2col.#')" -gt 0 ] || fail "no convolution has two prices"
for key in kernel implicit_us materialised_us; do value im2col.0.$key >/dev/null; done
try 0 compile $digits -o "$work/d" --shape n=1 --threads 1 --emit ll --no-rules im2col --json
is 'im2col.#' 0
finish
