"""The wheel: what is in it, and that it runs where the sources are not."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import ipamd
from ipamctl.cni.static import compilers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sources with the build backend that is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--disable-pip-version-check", "-w", str(folder), str(ROOT)], check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of a fresh virtual environment with the wheel; what it depends on is borrowed from ours."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=300)
    python = venv / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True, timeout=300)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return venv / "bin"


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def run(*command: str | Path, cwd: Path) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_wheel_holds_the_server_the_command_line_and_the_plugin(wheel: Path) -> None:
    names = names_in(wheel)
    assert {"ipamd/main.py", "ipamd/core/decide.py", "ipamctl/main.py", "ipamd_cni.py"} <= names
    assert "ipamctl/cni/ipamd_cni.c" in names
    assert {"ipamd/web/index.html", "ipamd/web/app.js", "ipamd/web/style.css"} <= set(names)
    assert "ipamd/migrations/env.py" in names
    assert any(name.startswith("ipamd/migrations/versions/0001") for name in names)


def test_every_source_file_of_the_program_is_in_the_wheel(wheel: Path) -> None:
    homes = {"ipamd": "ipamd", "cli/ipamctl": "ipamctl", "migrations": "ipamd/migrations"}
    wanted = {
        f"{home}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, home in homes.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert wanted <= names_in(wheel)


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    allowed = ("ipamd/", "ipamctl/", "ipamd_cni.py", "ipamd_server-")
    assert {name for name in names_in(wheel) if not name.startswith(allowed) or "__pycache__" in name} == set()


def test_the_installed_server_says_its_version(installed: Path, tmp_path: Path) -> None:
    version = run(installed / "python", "-c", "import ipamd; print(ipamd.__version__)", cwd=tmp_path).strip()
    assert version
    assert version in run(installed / "ipamd", "version", cwd=tmp_path)


def test_the_installed_program_is_that_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    places = run(
        installed / "python", "-c", "import ipamd, ipamctl; print(ipamd.__file__, ipamctl.__file__)", cwd=tmp_path
    )
    assert all(Path(place).is_relative_to(installed.parent) for place in places.split())


def test_the_installed_command_line_helps(installed: Path, tmp_path: Path) -> None:
    assert "pool" in run(installed / "ipamctl", "--help", cwd=tmp_path)


def test_the_installed_command_line_installs_the_plugin(installed: Path, tmp_path: Path) -> None:
    run(installed / "ipamctl", "cni", "install", "--bin-dir", tmp_path, cwd=tmp_path)
    plugin = tmp_path / "ipamd"
    assert plugin.stat().st_mode & 0o777 == 0o755
    assert plugin.read_text().startswith("#!")


def test_the_installed_command_line_compiles_the_static_plugin(installed: Path, tmp_path: Path) -> None:
    if not compilers() and os.environ.get("CI") != "true":
        pytest.skip("needs a C compiler (Debian: gcc, libc6-dev)")
    run(installed / "ipamctl", "cni", "install", "--static", "--bin-dir", tmp_path, cwd=tmp_path)
    assert (tmp_path / "ipamd").read_bytes().startswith(b"\x7fELF")


def test_the_program_and_its_package_agree_on_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == ipamd.__version__
