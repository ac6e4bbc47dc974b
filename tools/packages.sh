#!/bin/sh
# Makes sure that the Debian packages of packages.txt are there: tools/packages.sh [PURPOSE…]   (default: build)
# Says nothing when they are. Installs what is missing when root, or when sudo asks for no password; otherwise lists
# it and fails. Where there is no dpkg, CMake names what it does not find.
set -eu
command -v dpkg-query >/dev/null || exit 0
[ $# -gt 0 ] || set -- build
list=$(dirname "$0")/../packages.txt
wanted=$(awk -v purposes=" $* " '!/^#/ && NF > 1 && index(purposes, " " $2 " ") { print $1 }' "$list")
[ -n "$wanted" ] || { echo "packages.sh: no package has the purpose: $*" >&2; exit 2; }

missing_now() {
  present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | awk '$1 == "installed" { print $2 }')
  for p in $wanted; do
    case "
$present
" in *"
$p
"*) ;; *) printf '%s ' "$p" ;; esac
  done
}

missing=$(missing_now)
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
else
  printf 'These Debian packages are missing:\n  %s\nInstall them with:\n  apt-get install --no-install-recommends %s\n' \
    "$missing" "$missing" >&2
  exit 1
fi
echo "Installing $(echo $missing | wc -w) Debian packages: $missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120"
install="$get install --no-install-recommends $missing"
$install </dev/null >"$log" 2>&1 || { $get update </dev/null >>"$log" 2>&1 && $install </dev/null >>"$log" 2>&1; } || {
  tail -n 20 "$log" >&2
  echo "packages.sh: installing failed" >&2
  exit 1
}
