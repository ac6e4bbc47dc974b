"""IREE: the ONNX file through its importer to its compiler for this CPU; called through the VM with buffers that stay on the
device, which is this CPU. One thread runs on the calling one (local-sync), more in IREE's own pool (local-task)."""
import os
import subprocess
import sys

import numpy as np

from peers import Unsupported


def tool(name, *arguments):
    """One of the programs that the package installs beside the interpreter."""
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), name), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Unsupported(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[0][:200]}")


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        path = os.path.join(folder, "iree.vmfb")
        if os.path.exists(path):
            return
        imported = os.path.join(folder, "iree.mlir")
        tool("iree-import-onnx", model, "-o", imported, "--opset-version", "17")
        tool("iree-compile", imported, "-o", path, "--iree-input-type=onnx", "--iree-hal-target-device=local",
             "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
        os.unlink(imported)

    def __init__(self, model, threads, folder, feed):
        import iree.runtime as rt
        if threads > 1:
            rt.flags.parse_flags(f"--task_topology_group_count={threads}")
        if not os.path.getsize(os.path.join(folder, "iree.vmfb")):
            raise Unsupported("not compiled")
        self.config = rt.Config("local-task" if threads > 1 else "local-sync")
        self.module = rt.VmModule.mmap(self.config.vm_instance, os.path.join(folder, "iree.vmfb"))
        self.context = rt.SystemContext(config=self.config)
        self.context.add_vm_module(self.module)
        name = next(n for n in self.module.function_names if not n.startswith("__") and not n.endswith("$async"))
        self.function = self.module.lookup_function(name)
        self.arguments = rt.VmVariantList(len(feed))
        for value in feed.values():
            held = rt.asdevicearray(self.config.device, np.ascontiguousarray(value))
            self.arguments.push_ref(held._buffer_view)
        self.results, self.rt = None, rt

    def run(self):
        self.results = self.rt.VmVariantList(1)
        self.context.vm_context.invoke(self.function, self.arguments, self.results)

    def result(self):
        view = self.results.get_as_object(0, self.rt.HalBufferView)
        return [np.array(self.rt.DeviceArray(self.config.device, view, implicit_host_transfer=True))]
