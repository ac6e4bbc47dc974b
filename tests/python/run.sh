#!/usr/bin/env bash
# tests/python/run.sh BUILD: `pip install ./python` in a virtual environment without a network, then the examples of
# its README and manual, and its tests. Skipped where Python's headers or venv are missing.
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3) || { echo "python: skipped, there is no python3"; exit 77; }
"$python" - <<'P' || { echo "python: skipped, headers of Python 3.11 or later, or venv, are missing (Debian: apt-get install python3-dev python3-venv)"; exit 77; }
import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
P
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache PYTHONDONTWRITEBYTECODE=1

"$python" -m venv --system-site-packages "$work/venv"
"$work/venv/bin/pip" install --no-index --no-deps --disable-pip-version-check -q --config-settings build="$build" ./python
cd "$work" # not where the sources lie
"$work/venv/bin/python" -W error::UserWarning "$here/examples.py" "$here/../../python/README.md" "$here/../../docs/python.md" \
  "$here"/../../examples/notebooks/*.ipynb
"$work/venv/bin/python" -m unittest discover -q -s "$here"
if "$work/venv/bin/python" -c 'import mypy' 2>/dev/null; then
  "$work/venv/bin/python" -m mypy --config-file "$here/../../python/pyproject.toml" --no-incremental -p tarn
fi
