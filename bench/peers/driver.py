"""The other end of worker.py's pipe, and rounds in which engines take turns."""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def busy(seconds=0.5):
    """The part of all processors' time that others take meanwhile."""
    def ticks():
        with open("/proc/stat") as f:
            t = [int(x) for x in f.readline().split()[1:]]
        return sum(t), t[3] + t[4]
    all0, idle0 = ticks()
    time.sleep(seconds)
    all1, idle1 = ticks()
    return 1 - (idle1 - idle0) / max(all1 - all0, 1)


def must_be_idle(even_busy):
    """Times taken beside other work are worth nothing: ends the program, unless told not to."""
    share = busy()
    if share > 0.1 and not even_busy:
        raise SystemExit(f"the machine is {100 * share:.0f} % busy: nothing is measured (--even-busy does it all the same)")


class Engine:
    """A worker process of the engine `kind`, started anew when it has died; name: what its times are called."""

    def __init__(self, kind, log, name=None):
        self.kind, self.log, self.name, self.process = kind, log, name or kind, None

    def start(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py"), self.kind], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)

    def ask(self, **request):
        if self.process is None or self.process.poll() is not None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            self.process = None
            return {"error": f"the process ended with {code}"}
        return json.loads(line)

    def ran(self):
        """Seconds that the process has run, its threads together."""
        folder, total = f"/proc/{self.process.pid}/task", 0
        for thread in os.listdir(folder):
            try:
                with open(f"{folder}/{thread}/schedstat") as f:
                    total += int(f.read().split()[0])
            except OSError:  # it has just ended
                pass
        return 1e-9 * total

    def settle(self, quiet=0.005, most=1.0):
        """Waits until the engine's idle threads sleep: some spin for tens of milliseconds and keep a core from the next engine."""
        end, last = time.monotonic() + most, -1.0
        while self.process is not None and self.process.poll() is None and time.monotonic() < end:
            now = self.ran()
            if now - last < 0.1 * quiet:
                return
            last = now
            time.sleep(quiet)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def rounds(engines, count, seconds, least):
    """Times of loaded engines, taking turns: {name: {"median", "least", "all"}}."""
    got = {e.name: [] for e in engines}
    low = {e.name: [] for e in engines}
    for e in engines:
        e.settle()
    for _ in range(count):
        for e in engines:
            answer = e.ask(do="time", seconds=seconds, least=least)
            e.settle()
            if "median" in answer:
                got[e.name].append(answer["median"])
                low[e.name].append(answer["least"])
    return {n: {"median": statistics.median(t), "least": min(low[n]), "all": t} for n, t in got.items() if t}
