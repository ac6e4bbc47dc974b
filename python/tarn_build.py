"""Builds the wheel: `pip install ./python`, `make wheel`, or `python3 python/tarn_build.py DIR`.

A backend of PEP 517 that needs nothing but Python, a C compiler and pkg-config, so that a machine
without network builds it. Libraries and programs: those of ../build, or of the folder that pip's
--config-settings build=DIR names, which the wheel then carries; where nothing is built, those that
pkg-config finds, which stay where they are. What the libraries need of the system (LLVM, SQLite,
hwloc, XGBoost, protobuf-c, yajl, GMP) is not carried by `pip install ./python`.

`make wheel` makes one that is whole: libraries that link LLVM and lld statically (build/wheel_lib,
cmake/TarnWheel.cmake), and the system's other libraries with their licences, but for those that
manylinux leaves to it (PEP 600).
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
CARRIED = [*ALL, "tarn-fleet"]
# Of the policy manylinux_2_36 (PEP 600; auditwheel's manylinux-policy.json).
SYSTEMS = re.compile(
    r"(libc|libm|libdl|librt|libutil|libpthread|libresolv|libgcc_s|libstdc\+\+|libz"
    r"|ld-linux-.*|linux-vdso)\.so\.\d+$"
)


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


def place(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    to.chmod(0o755)
    if shutil.which("strip"):
        say("strip", "--strip-unneeded", str(to))


def carry(libraries: Path, package: Path, whole: Path | None) -> None:
    """whole: the folder of the libraries that need no LLVM of the system."""
    for name in CARRIED:
        found = sorted((whole or libraries).glob(f"lib{name}.so.?"))
        found = found or sorted(libraries.glob(f"lib{name}.so.?"))
        if found:
            place(found[-1], package / "lib" / found[-1].name)
    prefix = next(p for p in libraries.parents if (p / "bin" / "tarn").exists())
    for program in ("bin/tarn", "libexec/tarn/tarn-full"):
        place(prefix / program, package / program)
    if whole:
        place(whole / "ld.lld", package / "lib" / "ld.lld")


def point_to(package: Path) -> None:
    """Where the programs are that stay where they are."""
    (package / "bin").mkdir()
    program = Path(pkg_config("--variable=prefix", "tarn")) / "bin" / "tarn"
    (package / "bin" / "path").write_text(str(program))


def binaries(package: Path) -> list[Path]:
    files = sorted(p for p in package.rglob("*") if p.is_file())
    return [p for p in files if p.open("rb").read(4) == b"\x7fELF"]


def graft(package: Path, licences: Path) -> None:
    """Copies what the binaries need of the system, and the licences of that."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(package / "lib")}
    packages = {"llvm-19-dev", "liblld-19-dev"}
    for binary in binaries(package):
        listed = subprocess.run(
            ["ldd", str(binary)], capture_output=True, text=True, check=True, env=environment
        ).stdout
        if "not found" in listed:
            raise SystemExit(f"tarn: {binary.name}: a library is missing:\n{listed}")
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE):
            if SYSTEMS.match(name) or (package / "lib" / name).exists():
                continue
            place(Path(path).resolve(), package / "lib" / name)
            packages.add(owner(Path(path).resolve()))
    for binary in binaries(package):
        up = "/".join([".."] * (len(binary.relative_to(package).parts) - 1))
        rpath = "$ORIGIN" if binary.parent.name == "lib" else f"$ORIGIN/{up}/lib"
        say("patchelf", "--force-rpath", "--set-rpath", rpath, str(binary))
    for name in sorted(packages):
        text = Path("/usr/share/doc") / name / "copyright"
        (licences / name).write_bytes(text.read_bytes())


def owner(path: Path) -> str:
    """The package of Debian that a file is from."""
    for at in (path, Path("/") / path.relative_to("/usr") if path.is_relative_to("/usr") else path):
        found = subprocess.run(["dpkg", "-S", str(at)], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"tarn: {path}: of no package, and so without a licence")


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
        "License: Apache-2.0\nRequires-Python: >=3.11\nProvides-Extra: torch\n"
        "Requires-Dist: torch >=2.6; extra == 'torch'\n"
        "Requires-Dist: onnxscript; extra == 'torch'\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )


def tag(whole: bool) -> str:
    """Of a whole one: every system whose C library is not older than this one's."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if whole:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[-1]
        platform = platform.replace("linux", "manylinux_" + glibc.replace(".", "_"))
    return f"{ABI}-{platform}"


def write_info(to: Path, whole: bool = False) -> Path:
    info = to / f"tarn-{version()}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(metadata())
    (info / "entry_points.txt").write_text(
        "[console_scripts]\ntarn = tarn._command:main\n"
        "[torch_dynamo_backends]\ntarn = tarn._torch:backend\n"
    )
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: tarn_build\nRoot-Is-Purelib: false\n"
        f"Tag: {tag(whole)}\n"
    )
    return info


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, str] | None = None
) -> str:
    return write_info(Path(metadata_directory)).name


def write_wheel(tree: Path, to: Path, whole: bool) -> str:
    info = write_info(tree, whole)
    name = f"tarn-{version()}-{tag(whole)}.whl"
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
        settings = config_settings or {}
        build = Path(settings.get("build", HERE.parent / "build"))
        whole = build / "wheel_lib" if settings.get("whole") else None
        libraries = staged(build, work / "stage")
        if libraries:
            carry(libraries, package, whole)
        else:
            point_to(package)
        for name in MODULES:
            compile_module(name, package, libraries is not None)
        licences = write_info(work / "tree") / "licenses"
        licences.mkdir()
        if (HERE.parent / "LICENSE").exists():
            shutil.copyfile(HERE.parent / "LICENSE", licences / "LICENSE")
        if whole:
            graft(package, licences)
        return write_wheel(work / "tree", Path(wheel_directory), whole is not None)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    directory.mkdir(parents=True, exist_ok=True)
    print(directory / build_wheel(str(directory), {"whole": "yes"}))
