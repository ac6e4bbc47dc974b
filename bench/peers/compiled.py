"""tarn compile and tarn check as the benchmarks run them."""
import json
import os
import subprocess
import tempfile
import time


def runtime_of(tarn):
    """libtarn-rt.so of a build or of an installed tree."""
    near = os.path.dirname(os.path.abspath(tarn))
    for folder in ("lib", "../lib", "../lib/x86_64-linux-gnu"):
        path = os.path.join(near, folder, "libtarn-rt.so")
        if os.path.exists(path):
            return os.path.realpath(path)
    raise SystemExit(f"no libtarn-rt.so beside {tarn}")


def run(command):
    """Exit code, standard output, standard error, seconds, and the most memory it had at a time (bytes)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return process.returncode, out.read().decode(), err.read().decode().strip(), seconds, usage.ru_maxrss * 1024


def tune(tarn, model, store, trials, threads, numerics, most=180):
    """So many measurements of the model's kernels in a store of their own, those included that it has, for `most` seconds or
    little more: the seconds that it took, or {"error"}."""
    kind = numerics.partition("@")[0]
    code, _, said, seconds, _ = run([tarn, "tune", model, "--trials", str(trials), "--threads", str(threads), "--numerics", kind,
                                     "--seconds", str(most), "--db", store, "--output", store + ".json"])
    return {"error": said[-200:] or f"exit {code}", "made": time.time()} if code else {"tune": seconds}


def compile_model(tarn, model, out, threads, numerics, store=None):
    """The program in out, by what the store has measured if there is one, with a link to the runtime library; what is worth
    keeping of the report, or {"error"}. numerics: a class, or approx@X for --numerics approx --rtol X."""
    os.makedirs(out, exist_ok=True)
    kind, _, rtol = numerics.partition("@")
    command = [tarn, "compile", model, "-o", out, "--threads", str(threads), "--numerics", kind, "--json"]
    command += (["--rtol", rtol] if rtol else []) + (["--db", store] if store else [])
    code, text, said, seconds, memory = run(command)
    if code:
        return {"error": said[:200] or f"exit {code}", "made": time.time()}
    link = os.path.join(out, "libtarn-rt.so")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(runtime_of(tarn), link)
    report = json.loads(text)
    return {"compile": seconds, "compile_memory": memory, "made": time.time(), "memory": report["memory"],
            **{k: report[k] for k in ("kernels", "copies", "price", "price_bound", "numerics_used")}}


def check(tarn, out):
    """Whether `tarn check` finds the program right, and what it says."""
    code, text, said, _, _ = run([tarn, "check", out, "--json"])
    return {"right": code == 0, "check": json.loads(text) if code in (0, 1) else said[:200]}
