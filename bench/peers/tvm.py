"""Apache TVM: the ONNX file through Relax's importer, compiled for this CPU. Untuned it is the default pipeline; with trials
(the engine tvm-N) MetaSchedule tunes it first, with constants laid out as the tuned kernels want them. The records of each
number of threads stay in the folder: a later run with the same N measures nothing, one with a larger N the difference.

What differs from TVM's own settings, and why:
- Of its tensor intrinsics only those of x86 are loaded. The rest, for GPUs and others, take a minute to parse here, in the
  tuner and again in every process that builds candidates, which is longer than TVM lets a build take.
- Candidates are built in forked processes: TVM's own builder starts a new interpreter for every round, which imports all of
  TVM and, where it is installed, PyTorch.
- A generation of the evolutionary search has twice as many candidates as are then measured, not 512 for 64: each costs some
  30 ms, whatever becomes of it."""
import importlib
import os
import signal
import sys
import tempfile
import time
import types

import onnx

from peers import Unsupported


def few_intrinsics():
    """The package tvm.s_tir.tensor_intrin without what its __init__ imports."""
    import tvm
    name = "tvm.s_tir.tensor_intrin"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(os.path.dirname(tvm.__file__), "s_tir", "tensor_intrin")]
        sys.modules[name] = package
        importlib.import_module(name + ".x86")


def sources(model, tvm, relax, target):
    """Relax functions whose operators are loops, fused, their constants free to be laid out anew."""
    from tvm.relax.frontend.onnx import from_onnx
    try:
        module = from_onnx(onnx.load(model))
    except Exception as e:
        raise Unsupported(f"import: {str(e).strip().splitlines()[-1][:160]}") from e
    with target:
        return tvm.transform.Sequential([
            relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings(), relax.transform.FoldConstant(),
            relax.pipeline.zero_pipeline(), relax.transform.AttachAttrLayoutFreeBuffers()])(module)


def forking_builder(ms, workers, seconds):
    """MetaSchedule's builder: each candidate becomes a library in a child of this process, for at most so many seconds."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder.local_builder import default_build, default_export

    def child(request, path):
        """Does not return: writes where the library is, or why there is none."""
        try:
            said = default_export(default_build(request.mod, request.target, None))
        except BaseException as e:
            said = f"!{e}"[:2000]
        with open(path, "w") as f:
            f.write(said)
        os._exit(0)

    @derived_object
    class Forks(ms.builder.PyBuilder):
        def build(self, requests):
            with tempfile.TemporaryDirectory() as folder:
                results, running, waiting = {}, {}, list(enumerate(requests))
                while waiting or running:
                    while waiting and len(running) < workers:
                        index, request = waiting.pop(0)
                        path = os.path.join(folder, str(index))
                        pid = os.fork()
                        if not pid:
                            child(request, path)
                        running[pid] = index, path, time.monotonic() + seconds
                    for pid, (index, path, end) in list(running.items()):
                        if os.waitpid(pid, os.WNOHANG)[0]:
                            results[index] = self.told(path)
                            del running[pid]
                        elif time.monotonic() > end:
                            os.kill(pid, signal.SIGKILL)
                    time.sleep(0.005)
            return [results[i] for i in range(len(requests))]

        @staticmethod
        def told(path):
            said = "!no answer"
            if os.path.exists(path):
                with open(path) as f:
                    said = f.read()
            made = not said.startswith("!")
            return ms.builder.BuilderResult(said if made else None, None if made else said[1:])

    return Forks()


def measured(records):
    path = os.path.join(records, "database_tuning_record.json")
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return sum(1 for _ in f)


def tune(module, target, threads, trials, records):
    """Measures until there are that many records, in rounds that give each kernel its turn."""
    from tvm.s_tir import meta_schedule as ms
    left = trials - measured(records)
    if left <= 0:
        return
    os.makedirs(records, exist_ok=True)
    few_intrinsics()
    tasks = ms.relax_integration.extract_tasks(module, target, {})
    each = max(1, min(64, left // max(len(tasks), 1)))
    size = max(32, 2 * each)
    search = ms.search_strategy.EvolutionarySearch(population_size=size, init_min_unmeasured=size // 4)
    contexts, weights = ms.relax_integration.extracted_tasks_to_tune_contexts(
        tasks, records, strategy=search, num_threads=os.cpu_count(), seed=1)
    evaluator = ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20)
    ms.tune.tune_tasks(
        tasks=contexts, task_weights=weights, work_dir=records, max_trials_global=left, num_trials_per_iter=each,
        builder=forking_builder(ms, os.cpu_count(), 60),
        runner=ms.runner.LocalRunner(timeout_sec=20, evaluator_config=evaluator))


class Peer:
    trials = 0

    @classmethod
    def prepare(cls, model, threads, folder):
        path = os.path.join(folder, f"tvm{threads}.so")
        records = os.path.join(folder, f"records{threads}")
        if os.path.exists(path) and measured(records) >= cls.trials:
            return
        os.environ["TVM_NUM_THREADS"] = str(threads)  # of the processes that measure
        import tvm
        from tvm import relax
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
        module = sources(model, tvm, relax, target)
        if cls.trials:
            tune(module, target, threads, cls.trials, records)
            with target:
                module = tvm.transform.Sequential([
                    relax.transform.MetaScheduleApplyDatabase(records), relax.transform.SplitLayoutRewritePreproc(),
                    relax.transform.FoldConstant()])(module)
        tvm.compile(module, target=target).export_library(path)

    def __init__(self, model, threads, folder, feed):
        import tvm
        from tvm import relax
        path = os.path.join(folder, f"tvm{threads}.so")
        if not os.path.exists(path):
            raise Unsupported("not compiled")
        tvm.get_global_func("runtime.config_threadpool")(1, threads)
        self.machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
        self.machine.set_input("main", *[tvm.runtime.tensor(v) for v in feed.values()])

    def run(self):
        self.machine.invoke_stateful("main")

    def result(self):
        out = self.machine.get_outputs("main")
        return [o.numpy() for o in (out if isinstance(out, (tuple, list)) else [out])]
