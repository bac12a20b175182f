"""Install agents from npm and PyPI, below one folder, in the versions that their files name.

    install.py FOLDER PACKAGE...    only npm packages, such as npm:NAME@VERSION
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import threading

NODE = "22.23.3"
"""The Node that is installed, from npm, where the machine's is too old for an agent."""
UV = "uv==0.13.8"
"""The installer of Python packages: quicker than pip, and able to replace a version that a package asks for."""
PATIENCE = 600

_installing_node = threading.Lock()


class CannotRun(Exception):
    """The agent cannot run on this machine."""


class InstallFailure(Exception):
    """A package could not be installed."""


class Programs:
    """The programs of an agent."""

    def __init__(self, program, path):
        self.program = program
        self.path = path
        """The folders to search for programs."""


def install(agent, folder, say):
    """Installs what is missing, and returns the agent's programs."""
    path = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    binaries = []
    for package in agent.packages:
        kind, _, wanted = package.partition(":")
        if kind == "npm":
            binaries.append(install_npm(folder / "npm", wanted, say))
        else:
            binaries.append(install_pypi(folder / "pypi", wanted, agent, say))
    if node_version() < agent.node:
        # Agents run beside each other and share this one.
        with _installing_node:
            path.insert(0, str(install_node(folder / "npm", say)))
    program = next((found for each in binaries if (found := each / agent.program).exists()), None)
    if not program:
        raise InstallFailure(f"{agent.packages} have no program {agent.program!r}")
    return Programs(program, path)


def run(words, what, **options):
    ran = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **options)
    if ran.returncode:
        raise InstallFailure(f"{what} could not be installed; check the network and the registry, then run this again: "
                             f"{(ran.stderr or ran.stdout).strip()[-2000:]}")
    return ran.stdout


def install_npm(folder, package, say):
    """Each package has a folder of its own: their versions of the same dependency differ."""
    name, _, version = package.rpartition("@")
    place = folder / name.replace("/", "-").lstrip("@")
    marker = place / "node_modules" / name / "package.json"
    if not marker.exists() or json.loads(marker.read_text())["version"] != version:
        say(f"installing {package}")
        place.mkdir(parents=True, exist_ok=True)
        run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent", package], package)
    return place / "node_modules" / ".bin"


def install_pypi(folder, package, agent, say):
    python = agent.python
    interpreter = find_python(python)
    if not interpreter:
        wanted = ".".join(map(str, python))
        raise CannotRun(f"needs Python {wanted} (this is {platform.python_version()}, and no python{wanted} is in PATH)")
    name, _, version = package.partition("==")
    place = folder / name
    marker = place / "installed"
    if not marker.exists() or marker.read_text() != version:
        say(f"installing {package}")
        shutil.rmtree(place, ignore_errors=True)
        run([interpreter, "-m", "venv", str(place)], package)
        run([str(place / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", UV], UV)
        overrides = place / "overrides.txt"
        overrides.write_text("".join(f"{name}\n" for name in agent.any_version))
        run([str(place / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), "--override",
             str(overrides), package], package)
        marker.write_text(version)
    return place / "bin"


def find_python(wanted):
    """A Python of at least this version, in PATH or among pyenv's."""
    names = [f"python3.{minor}" for minor in range(wanted[1], wanted[1] + 3)]
    candidates = [sys.executable, *filter(None, map(shutil.which, names))]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    candidates += sorted(str(path) for name in names for path in pyenv.glob(f"*/bin/{name}"))
    for candidate in candidates:
        words = [candidate, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode == 0 and tuple(map(int, ran.stdout.split())) >= wanted:
            return candidate
    return None


def node_version():
    try:
        return int(subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout[1:].split(".")[0])
    except (OSError, subprocess.CalledProcessError):
        return 0


def install_node(folder, say):
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    if sys.platform != "linux" or not machine:
        raise CannotRun(f"needs Node {NODE.split('.')[0]}")
    name = f"node-linux-{machine}"
    place = install_npm(folder, f"{name}@{NODE}", say).parent / name / "bin"
    return place


if __name__ == "__main__":
    for each in sys.argv[2:]:
        install_npm(pathlib.Path(sys.argv[1]) / "npm", each.removeprefix("npm:"), print)
