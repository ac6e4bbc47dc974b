"""tarn itself, as a C program would call it: model.so through its description, libtarn-rt's pool, buffers that stay.
The program is compiled beforehand, by `tarn compile`, into the folder, and a link to libtarn-rt.so laid beside it."""
import ctypes
import os

import numpy as np

from peers import output_shapes


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("n", ctypes.c_int32),
                ("dim", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_uint64)]


class Model(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("nin", ctypes.c_uint32), ("nout", ctypes.c_uint32), ("nkernel", ctypes.c_uint32),
                ("workspace", ctypes.c_uint64), ("per_thread", ctypes.c_uint64), ("input", ctypes.POINTER(Port)),
                ("output", ctypes.POINTER(Port)), ("kernel_name", ctypes.c_void_p), ("kernel", ctypes.c_void_p),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
                ("consts", ctypes.c_void_p), ("const_bytes", ctypes.c_uint64)]


def aligned(count):
    """float32 array that begins on a cache line."""
    raw = np.zeros(4 * count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + 4 * count].view(np.float32)


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        raise RuntimeError("tarn compile prepares it")

    def __init__(self, model, threads, folder, feed):
        self.rt = ctypes.CDLL(os.path.join(folder, "libtarn-rt.so"))
        self.rt.tarn_rt_pool_new.restype = ctypes.c_void_p
        self.rt.tarn_rt_pool_free.argtypes = [ctypes.c_void_p]
        self.rt.tarn_rt_workspace_new.restype = ctypes.c_void_p
        self.rt.tarn_rt_workspace_new.argtypes = [ctypes.c_uint64]
        self.so = ctypes.CDLL(os.path.join(folder, "model.so"))
        self.model = Model.in_dll(self.so, "tarn_model")
        self.rt.tarn_rt_constants_huge.restype = ctypes.c_uint64
        self.rt.tarn_rt_constants_huge(ctypes.byref(self.model))
        self.pool = self.rt.tarn_rt_pool_new(threads)
        self.inputs = []
        for i in range(self.model.nin):
            port = self.model.input[i]
            value = feed[port.name.decode()]
            place = aligned(value.size)
            place[:] = value.ravel()
            self.inputs.append(place)
        self.outputs = [aligned(self.model.output[i].bytes // 4) for i in range(self.model.nout)]
        workspace = self.rt.tarn_rt_workspace_new(self.model.workspace + threads * self.model.per_thread)
        self.arguments = (self.pointers(self.inputs), self.pointers(self.outputs), workspace, self.pool)
        self.shapes = [s for _, s in output_shapes(model)]

    @staticmethod
    def pointers(arrays):
        return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])

    def run(self):
        if self.model.run(*self.arguments):
            raise RuntimeError("a kernel failed")

    def result(self):
        return [o.reshape(s) for o, s in zip(self.outputs, self.shapes)]

    def __del__(self):
        if getattr(self, "pool", None):
            self.rt.tarn_rt_pool_free(self.pool)
