#!/usr/bin/env python3
"""tools/mutate.py ROOM [-n N] [--seed K] [--tests NAME,...] [--build DIR]: does a test notice small faults?

Changes N random places in the C files of ROOM (a folder, such as quantize or rules/check), one at a time, in a copy of the
working tree. Each is built, and the tests that include the room's headers, themselves or through tests/*.h, run until one fails. Prints every change that
none notices. A survivor is a place to look at: a test is missing there, or the change means nothing. Exit code 1 if more
than 15 of 100 survive.
"""
import argparse, filecmp, glob, os, random, re, shutil, subprocess, sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECONDS = 120  # of one test; a change that makes it hang is noticed
# What stands in the code, and what it becomes.
CHANGES = [(r"<=", "<"), (r"(?<![<-])<(?![<=])(?=\s)", "<="), (r">=", ">"), (r"(?<![->])>(?![>=])(?=\s)", ">="), (r"==", "!="),
           (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"), (r"(?<=\s)\+(?=\s)", "-"), (r"(?<=\s)-(?=\s)", "+"), (r"\btrue\b", "false"),
           (r"\bfalse\b", "true"), (r"\btarn_min\b", "tarn_max"), (r"\btarn_max\b", "tarn_min"), (r"(?<=[(&|] )!(?=\w)|(?<=\()!(?=\w)", ""),
           (r"(?<![\w.\[])\d+(?![\w.\]])", lambda m: str(int(m.group()) + 1))]


def run(words, **kw):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def code_of(text):
    """The text with comments, strings, characters and directives blanked, so that places stay where they are."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M)


def places_in(path):
    """(begin, end, new text) of each change; none outside of functions, nor of how much is allocated."""
    code = code_of(open(path).read())
    inside = [(m.start(), m.end()) for m in re.finditer(r"^[^\s#}][^\n;]*\) \{\n.*?^\}", code, flags=re.M | re.S)]
    room_for = [(m.start(), m.end()) for m in re.finditer(r"^.*\b(TARN_ARRAY|TARN_NEW|tarn_new)\b.*$", code, flags=re.M)]
    for pattern, new in CHANGES:
        for m in re.finditer(pattern, code):
            within = lambda list: any(a <= m.start() < b for a, b in list)
            if within(inside) and not within(room_for):
                yield m.start(), m.end(), new(m) if callable(new) else new


def copy_tree(tree):
    """The working tree's files; what has not changed is left alone, so that it is not built again."""
    files = [f for f in run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP).stdout.splitlines() if os.path.isfile(f"{TOP}/{f}")]
    for f in files:
        to = f"{tree}/{f}"
        if not os.path.exists(to) or not filecmp.cmp(f"{TOP}/{f}", to, shallow=False):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(f"{TOP}/{f}", to)
    for f in set(glob.glob("**/*.[ch]", root_dir=tree, recursive=True)) - set(files):
        if not f.startswith("build"):
            os.remove(f"{tree}/{f}")
    return files


def includes(path, tree, seen):
    """The headers that a test includes, itself or through what tests share."""
    for name in re.findall(r'^#include "([^"]+)"', open(f"{tree}/{path}").read(), flags=re.M):
        if name not in seen:
            seen.add(name)
            if name.startswith("tests/"):
                includes(name, tree, seen)
    return seen


def tests_of(room, tree):
    """Those that include a header of the room; first the ones that are named after it, then those that include it themselves."""
    found = {}
    for f in sorted(os.listdir(f"{tree}/tests")):
        if f.startswith("test_") and f.endswith(".c"):
            headers = includes(f"tests/{f}", tree, set())
            if any(h.startswith(room + "/") for h in headers):
                own = re.search(rf'^#include "{room}/', open(f"{tree}/tests/{f}").read(), flags=re.M)
                found[f[:-2]] = (os.path.basename(room) not in f, not own)
    return sorted(found, key=found.get)


def main():
    p = argparse.ArgumentParser(usage=__doc__.split(":")[0])
    p.add_argument("room")
    p.add_argument("-n", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tests", default="")
    p.add_argument("--build", default=os.path.join(TOP, "build-mutate"))
    a = p.parse_args()
    tree = os.path.join(a.build, "tree")
    os.makedirs(tree, exist_ok=True)
    files = copy_tree(tree)
    if not os.path.exists(f"{tree}/build/build.ninja"):
        run(["cmake", "--preset", "release"], cwd=tree)
    tests = a.tests.split(",") if a.tests else tests_of(a.room, tree)
    build = ["cmake", "--build", "build", "--target", *tests]
    first = run(build, cwd=tree)
    if first.returncode or not tests:
        sys.exit(f"mutate: {a.room}: " + (first.stdout[-400:] if tests else "no test includes its headers"))
    broken = [t for t in tests if run([f"build/bin/{t}"], cwd=tree).returncode]
    tests = [t for t in tests if t not in broken]
    paths = [f for f in files if f.startswith(a.room + "/") and f.endswith(".c")]
    places = [(f, *x) for f in paths for x in places_in(f"{tree}/{f}")]
    random.Random(a.seed).shuffle(places)
    tried = survived = 0
    for path, begin, end, new in places:
        if tried == a.n:
            break
        text = open(f"{tree}/{path}").read()
        changed = text[:begin] + new + text[end:]
        open(f"{tree}/{path}", "w").write(changed)
        noticed = None
        if run(build, cwd=tree).returncode == 0:  # what does not compile is no fault
            tried += 1
            for t in tests:
                try:
                    if run([f"build/bin/{t}"], cwd=tree, timeout=SECONDS).returncode:
                        noticed = t
                        break
                except subprocess.TimeoutExpired:
                    noticed = t
                    break
            if not noticed:
                survived += 1
                line = text.count("\n", 0, begin)
                print(f"{path}:{line + 1}: {text.splitlines()[line].strip()}\n    became {changed.splitlines()[line].strip()}", flush=True)
        open(f"{tree}/{path}", "w").write(text)
    run(build, cwd=tree)
    print(f"{a.room}: {tried} changes, {survived} survived ({100 * survived // max(tried, 1)} %) of {len(tests)} tests")
    sys.exit(survived * 100 > 15 * tried)


main()
