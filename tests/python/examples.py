"""examples.py FILE…: runs the Python blocks of each page, or the cells of each notebook, in turn, in
one namespace and folder; a line `print(…)  # TEXT` must print TEXT. A block that imports what is
not installed is left out."""

import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"


def missing(block: str) -> list[str]:
    wanted = re.findall(r"^(?:import|from) (\w+)", block, re.M)
    return [w for w in wanted if importlib.util.find_spec(w) is None]


def blocks_of(page: Path) -> list[str]:
    text = page.read_text()
    if page.suffix != ".ipynb":
        return re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    return ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]


def run(page: Path) -> int:
    names: dict[str, object] = {}
    blocks = blocks_of(page)
    bad = 0
    for block in blocks:
        if missing(block):
            print(f"{page.name}: a block is left out: {', '.join(missing(block))} is not installed")
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, page.name, "exec"), names)
        wanted = re.findall(r"^print\(.*\)\s+# (.*)$", block, re.M)
        if said.getvalue().splitlines() != wanted:
            print(f"{page.name}: printed\n{said.getvalue()}expected\n" + "\n".join(wanted))
            bad += 1
    if not blocks:
        print(f"{page.name}: no block of Python")
    return bad + (not blocks)


Path("digits.onnx").write_bytes(DIGITS.read_bytes())
sys.exit(sum(run(Path(name)) for name in sys.argv[1:]) > 0)
