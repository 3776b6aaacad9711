"""The ARM kernels, cross-compiled and run under an emulator: `pytest -m slow -k arm`.

Needs Debian's g++-aarch64-linux-gnu and qemu-user, and cmake.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("aarch64-linux-gnu-g++", "qemu-aarch64", "cmake")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
def test_arm_kernels_agree_with_the_portable_ones(tmp_path: Path) -> None:
    options = ["-DMZ_KERNEL_TEST=ON", "-DCMAKE_SYSTEM_NAME=Linux"]
    options += ["-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={TOOLS[0]}"]
    options += ["-DCMAKE_EXE_LINKER_FLAGS=-static"]
    subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, *options], check=True)
    subprocess.run(["cmake", "--build", tmp_path, "--parallel", "2"], check=True)
    run = ["qemu-aarch64", "-cpu", "max", tmp_path / "kernel_test"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.split("\n")[:3] == ["i8mm: right", "dotprod: right", "portable: right"]
