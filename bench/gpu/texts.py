#!/usr/bin/env python3
"""PTX that others make of small kernels, for the executor: test_ptx_texts.c runs it.

    bench/gpu/texts.py FOLDER [sm_80|sm_90]

nvrtc.ptx: what NVRTC makes of tests/data/ptx/nvrtc.cu. triton_NAME.ptx: what Triton makes of the kernels below, ahead of
time (mma.sync, ldmatrix, cp.async). Neither needs a GPU. Packages: nvidia-cuda-nvrtc-cu12, triton (bench/setup.sh BUILD gpu).
What is in tests/data/ptx was made so, with NVRTC 12.9 and Triton 3.9.0 for sm_80; texts that are there are left.
"""
import ctypes
import glob
import os
import sys
import sysconfig

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def nvrtc_library():
    found = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia/cuda_nvrtc/lib/libnvrtc.so.*"))
    return ctypes.CDLL(found[0] if found else "libnvrtc.so")


def nvrtc(source, target):
    n, program, size = nvrtc_library(), ctypes.c_void_p(), ctypes.c_size_t()
    text = open(source, "rb").read()
    assert n.nvrtcCreateProgram(ctypes.byref(program), text, b"nvrtc.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_" + target[3:].encode())
    code = n.nvrtcCompileProgram(program, 1, options)
    n.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    n.nvrtcGetProgramLog(program, log)
    if code:
        sys.exit("NVRTC: " + log.value.decode())
    n.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value + 1)
    n.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def triton_texts(target):
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    @triton.jit
    def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A: tl.constexpr):
        m = tl.program_id(0) * BM + tl.arange(0, BM)
        n = tl.program_id(1) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        s = tl.zeros((BM, BN), dtype=A)
        for at in range(0, K, BK):
            x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0)
            y = tl.load(b + (at + k)[:, None] * N + n[None, :], mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0)
            s = tl.dot(x, y, s, out_dtype=A)
        tl.store(c + m[:, None] * N + n[None, :], s, mask=(m[:, None] < M) & (n[None, :] < N))

    @triton.jit
    def normalise(x, y, n, eps, B: tl.constexpr):
        i = tl.arange(0, B)
        v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0)
        mean = tl.sum(v, axis=0) / n
        d = tl.where(i < n, v - mean, 0.0)
        scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
        tl.store(y + tl.program_id(0) * n + i, d * scale, mask=i < n)

    @triton.jit
    def attention(q, k, v, o, n, B: tl.constexpr, D: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        d = tl.arange(0, D)
        rows = tl.load(q + i[:, None] * D + d[None, :])
        most = tl.full((B,), -1e30, dtype=tl.float32)
        total = tl.zeros((B,), dtype=tl.float32)
        acc = tl.zeros((B, D), dtype=tl.float32)
        for at in range(0, n, B):
            j = at + tl.arange(0, B)
            s = tl.dot(rows, tl.trans(tl.load(k + j[:, None] * D + d[None, :])))
            m = tl.maximum(most, tl.max(s, axis=1))
            p = tl.exp(s - m[:, None])
            f = tl.exp(most - m)
            total = total * f + tl.sum(p, axis=1)
            acc = acc * f[:, None] + tl.dot(p.to(tl.float16), tl.load(v + j[:, None] * D + d[None, :]))
            most = m
        tl.store(o + i[:, None] * D + d[None, :], acc / total[:, None])

    def text(f, types, numbers, warps=4, stages=3):
        names = f.arg_names
        signature = {n: types[i] if i < len(types) else "constexpr" for i, n in enumerate(names)}
        constants = {(len(types) + i,): v for i, v in enumerate(numbers)}
        aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types) if t[0] == "*" or t == "i32"}
        source = ASTSource(fn=f, signature=signature, constexprs=constants, attrs=aligned)
        options = {"num_warps": warps, "num_stages": stages}
        return triton.compile(source, target=GPUTarget("cuda", int(target[3:]), 32), options=options).asm["ptx"]

    for name, t, out, accumulate in (("f16", "*fp16", "*fp32", tl.float32), ("bf16", "*bf16", "*fp32", tl.float32),
                                     ("tf32", "*fp32", "*fp32", tl.float32), ("i8", "*i8", "*i32", tl.int32)):
        yield name, text(product, [t, t, out, "i32", "i32", "i32"], [32, 32, 32, accumulate])
    yield "normalise", text(normalise, ["*fp32", "*fp32", "i32", "fp32"], [256])
    yield "attention", text(attention, ["*fp16", "*fp16", "*fp16", "*fp32", "i32"], [32, 32])


def write(path, make):
    if os.path.exists(path):
        return
    text = "\n".join(line for line in make().splitlines() if line.strip() and not line.lstrip().startswith("//"))
    with open(path, "w") as f:
        f.write(text + "\n")
    print(f"{path}: {len(text)} bytes")


def main():
    folder, target = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "sm_80"
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "nvrtc.ptx"), lambda: nvrtc(os.path.join(TOP, "tests/data/ptx/nvrtc.cu"), target))
    for name, text in triton_texts(target):
        write(os.path.join(folder, f"triton_{name}.ptx"), lambda t=text: t)


main()
