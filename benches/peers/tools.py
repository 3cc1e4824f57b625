"""Names, versions and commands of the compared tools; builds and installs the tools."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SIMILAR = ROOT / "benches" / "similar"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


@dataclass(frozen=True)
class Tool:
    """A tool of the comparison.

    `package` is its package in the registry. `kind` is "python", "rust" or "simstore". `task` is the first argument of
    benches/similar/rivals.py that runs a Python tool, or the name of the program in benches/similar/peers that runs a Rust
    tool. `settings` and `words` describe its settings and its splitting into words, in the report.
    """

    package: str
    kind: str
    task: str
    settings: str
    words: str


PYTHON_WORDS = "cut by an expression in Python"
TOOLS = {
    "simstore": Tool("simstore", "simstore", "dedup", "`dedup --keep-list`", "simstore's own"),
    "rensa": Tool("rensa", "python", "rensa-kept", "deduplicator, own bands, 256 hashes", PYTHON_WORDS),
    "rensa-32-bands": Tool("rensa", "python", "rensa-kept-bands", "deduplicator, 32 bands, 256 hashes", PYTHON_WORDS),
    "datasketch": Tool("datasketch", "python", "datasketch-kept", "MinHashLSH, 256 hashes", PYTHON_WORDS),
    "text-dedup": Tool("text-dedup", "python", "text-dedup-kept", "MinHash, 256 hashes", "its own"),
    "gaoya": Tool("gaoya", "rust", "gaoya", "MinHashIndex, 256 hashes", "cut at white space"),
    "find-simdoc": Tool("find-simdoc", "rust", "find-simdoc", "JaccardSearcher, 512 bits", "letters and digits"),
}
DEFAULT_TOOLS = [name for name in TOOLS if name != "find-simdoc"]


class Setup:
    """The paths of the built programs and of the Python environment.

    `failures` has the names of the tools that could not be installed, each with the reason.
    """

    def __init__(self, names, needs_parquet=False, needs_truth=True, needs_synth=False):
        self.target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
        self.failures = {}
        self.simstore = os.environ.get("SIMSTORE")
        release_folder = self.target / "release"
        if not self.simstore:
            self.cargo("build", "--release", "-p", "simstore-cli")
            self.simstore = str(release_folder / "simstore")
        self.truth = self.find_or_build("simstore-similar") if needs_truth else None
        self.synth = self.find_or_build("synth", "simstore-synth") if needs_synth else None
        kinds = {TOOLS[name].kind for name in names}
        self.python = sys.executable
        if "python" in kinds or needs_parquet:
            self.install(names)
        self.peers = Path(os.environ.get("PEERS") or self.target / "peers" / "release")
        if "rust" in kinds:
            self.build_peers(names)

    def cargo(self, *arguments):
        subprocess.run(["cargo", *arguments, "--quiet"], cwd=ROOT, check=True)

    def find_or_build(self, program, package=None):
        """Returns the path of a program of this project.

        The environment variable SIMSTORE can name the `simstore` program to measure. If its folder also has this program, returns that
        one. Otherwise builds the program.
        """
        existing = Path(self.simstore).resolve().with_name(program)
        if os.environ.get("SIMSTORE") and existing.exists():
            return str(existing)
        self.cargo("build", "--release", "-p", package or program)
        return str(self.target / "release" / program)

    def install(self, names):
        """Creates a Python environment with the tools, unless one with the same requirements exists.

        If the environment variable VENV names a Python environment, uses it unchanged instead.
        """
        if os.environ.get("VENV"):
            self.python = os.path.join(os.environ["VENV"], "bin", "python")
            return
        environment = self.target / "peers-venv"
        python, stamp = environment / "bin" / "python", environment / "requirements.txt"
        try:
            if not (stamp.exists() and stamp.read_bytes() == REQUIREMENTS.read_bytes()):
                print(f"installing {REQUIREMENTS.name} in {environment}", file=sys.stderr)
                subprocess.run([sys.executable, "-m", "venv", environment], check=True)
                pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                subprocess.run([*pip, "-r", REQUIREMENTS], check=True)
                shutil.copyfile(REQUIREMENTS, stamp)
            self.python = str(python)
        except (OSError, subprocess.CalledProcessError) as error:
            for name in names:
                if TOOLS[name].kind == "python":
                    self.failures[name] = f"not installed: {error}"

    def build_peers(self, names):
        """Builds the programs of benches/similar/peers, unless they all exist."""
        rust_names = [name for name in names if TOOLS[name].kind == "rust"]
        if all((self.peers / TOOLS[name].task).exists() for name in rust_names):
            return
        try:
            manifest = SIMILAR / "peers" / "Cargo.toml"
            self.cargo("build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", self.target / "peers")
            self.peers = self.target / "peers" / "release"
        except (OSError, subprocess.CalledProcessError) as error:
            for name in rust_names:
                self.failures[name] = f"not built: {error}"

    def version(self, name):
        """Returns the version of a tool: simstore reports its own; other tools have a pinned version."""
        tool = TOOLS[name]
        if tool.kind == "simstore":
            result = subprocess.run([self.simstore, "--version"], stdout=subprocess.PIPE, text=True, check=True)
            return result.stdout.split()[-1]
        pins = REQUIREMENTS if tool.kind == "python" else SIMILAR / "peers" / "Cargo.toml"
        pin = re.search(rf'^{tool.package} ?= ?=?"?=?([\d.]+)', pins.read_text(encoding="utf-8"), re.MULTILINE)
        return pin[1]

    def command(self, name, corpus, kept, similarity, memory=None, temporary=None):
        """Returns the command that runs a tool on the file `corpus` and writes the ids of the kept documents to the file `kept`.

        `memory` and `temporary` are options of simstore; other tools ignore them.
        """
        tool = TOOLS[name]
        if tool.kind == "simstore":
            command = [self.simstore, "dedup", "--quiet", "--similar", str(similarity), "--keep-list", kept]
            if memory:
                command += ["--memory", memory]
            if temporary:
                command += ["--temporary", temporary]
            return [*command, corpus]
        if tool.kind == "rust":
            return [str(self.peers / tool.task), corpus, kept, str(similarity)]
        script = str(SIMILAR / "rivals.py")
        return [self.python, script, tool.task, corpus, "--similarity", str(similarity), "--output", kept]


def describe_machine():
    """Returns the cores, processor model, memory, system and Python version of this machine."""
    model = next((line.split(":", 1)[1].strip() for line in read_lines("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    memory = next(int(line.split()[1]) for line in read_lines("/proc/meminfo") if line.startswith("MemTotal"))
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": model,
        "memory_gib": round(memory / 2**20, 1),
        "system": f"{os.uname().sysname} {os.uname().machine}",
        "python": python,
    }


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.readlines()


def copy_corpus(setup, data, corpus, ids, text_field, id_field, plain_words):
    """Copies the input files to one corpus. Returns the counts that documents.py prints, such as the number of documents.

    Runs documents.py in the Python environment of the tools, which can read Parquet.
    """
    script = str(Path(__file__).with_name("documents.py"))
    command = [setup.python, script, data, "--output", corpus, "--ids", ids, "--text-field", text_field, "--id-field", id_field]
    result = subprocess.run([*command, *["--plain-words"] * plain_words], stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(result.returncode)
    return json.loads(result.stdout)
