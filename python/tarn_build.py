"""Builds the wheel: `pip install ./python`, `make wheel`, or `python3 python/tarn_build.py DIR`.

A backend of PEP 517 that needs nothing but Python, a C compiler and pkg-config, so that a machine
without network builds it. Libraries: those of ../build, or of the folder that pip's
--config-settings build=DIR names, which the wheel then carries; where nothing is built, those that
pkg-config finds, which stay where they are. What the libraries need of the system (LLVM, SQLite,
hwloc, XGBoost, protobuf-c, yajl, GMP) is not carried.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ABI = "cp311-abi3"  # csrc/tp.h: the stable interface of Python 3.11
# module: its sources, the library that it is over; what it shares with the other
MODULES = {
    "_lab": (["graph", "choose", "learn", "shown"], "tarn-lab"),
    "_code": (["code", "program", "calls", "options", "run", "tensor", "borrow"], "tarn-tune"),
}
SHARED = ["tp"]
ALL = ["tarn-select", "tarn-rt", "tarn", "tarn-lab", "tarn-sim", "tarn-codegen", "tarn-tune"]


def version() -> str:
    cmake = HERE.parent / "CMakeLists.txt"
    if cmake.exists():
        found = re.search(r"project\(tarn VERSION ([0-9.]+)", cmake.read_text())
        if found:
            return found[1]
    return pkg_config("--modversion", "tarn")


def say(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tarn: {' '.join(command[:3])} … fails:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def pkg_config(*words: str) -> str:
    return say("pkg-config", *words)


def staged(build: Path, where: Path) -> Path | None:
    """The libraries of a build, installed into `where`; None: there are none."""
    if not (build / "lib" / "libtarn-tune.so").exists():
        return None
    say("cmake", "--install", str(build), "--prefix", str(where))
    found = next(where.glob("**/pkgconfig/tarn.pc"), None)
    if not found:
        return None
    os.environ["PKG_CONFIG_PATH"] = str(found.parent)
    return found.parent.parent


def carry(libraries: Path, package: Path) -> None:
    (package / "lib").mkdir()
    for name in ALL:
        newest = sorted(libraries.glob(f"lib{name}.so.?"))[-1]
        to = package / "lib" / newest.name
        shutil.copyfile(newest, to)
        to.chmod(0o755)
        if shutil.which("strip"):
            say("strip", "--strip-unneeded", str(to))


def compile_module(name: str, package: Path, carried: bool) -> None:
    sources, library = MODULES[name]
    libraries = ALL if library == "tarn-tune" else ["tarn-select", "tarn-rt", "tarn", "tarn-lab"]
    flags = pkg_config("--cflags", *libraries).split()
    rpath = "$ORIGIN/lib" if carried else pkg_config("--variable=libdir", "tarn")
    links = pkg_config("--libs", *libraries).split()
    say(
        *os.environ.get("CC", "cc").split(), "-std=c17", "-O2", "-fPIC", "-shared",
        "-fvisibility=hidden", "-Wall", "-Wextra", *flags,
        f"-I{sysconfig.get_path('include')}", f"-I{HERE / 'csrc'}",
        *[str(HERE / "csrc" / f"{s}.c") for s in sources + SHARED],
        "-o", str(package / f"{name}.abi3.so"), "-Wl,--no-as-needed", *links,
        f"-Wl,-rpath,{rpath}",
    )  # fmt: skip


def metadata() -> str:
    readme = (HERE / "README.md").read_text()
    return (
        f"Metadata-Version: 2.1\nName: tarn\nVersion: {version()}\n"
        "Summary: E-graphs, and models and tensor operators compiled to functions over DLPack\n"
        "License: Apache-2.0\nRequires-Python: >=3.11\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )


def tag() -> str:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{ABI}-{platform}"


def write_info(to: Path) -> Path:
    info = to / f"tarn-{version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata())
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: tarn_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    )
    return info


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, str] | None = None
) -> str:
    return write_info(Path(metadata_directory)).name


def write_wheel(tree: Path, to: Path) -> str:
    info = write_info(tree)
    name = f"tarn-{version()}-{tag()}.whl"
    lines = []
    with zipfile.ZipFile(to / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in sorted(p for p in tree.rglob("*") if p.is_file()):
            data = path.read_bytes()
            inside = path.relative_to(tree).as_posix()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{inside},sha256={digest},{len(data)}")
            wheel.write(path, inside)
        record = f"{info.name}/RECORD"
        wheel.writestr(record, "\n".join([*lines, f"{record},,"]) + "\n")
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        package = work / "tree" / "tarn"
        shutil.copytree(
            HERE / "tarn", package, ignore=shutil.ignore_patterns("__pycache__", "*.so", "lib")
        )
        build = (config_settings or {}).get("build", HERE.parent / "build")
        libraries = staged(Path(build), work / "stage")
        if libraries:
            carry(libraries, package)
        for name in MODULES:
            compile_module(name, package, libraries is not None)
        return write_wheel(work / "tree", Path(wheel_directory))


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    print(directory / build_wheel(str(directory)))
