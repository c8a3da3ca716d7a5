"""`schedlab sweep` on Slurm: one that answers here, or one of this node alone that the test starts."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schedlab.sweeping import run

SWEEP = """
kernels = ["linux-2.6.32", "linux-6.12"]
machines = ["2"]
workloads = ["messaging:groups=1"]
duration = "50ms"
seeds = 20
"""
# No cgroups, no accounting: nothing outside the folder is touched.
SLURM = """
ClusterName=alone
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a Slurm answer: the one that is here, or one of this node alone."""
    if shutil.which("sinfo") and not asked():
        yield
        return
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no Slurm answers here, and there is no {missing[0]} to start one (Debian: slurm-wlm and munge)")
    if os.getuid():
        pytest.skip("no Slurm answers here, and only root can start one")
    with tempfile.TemporaryDirectory(prefix="schedlab-slurm-") as name, contextlib.ExitStack() as daemons:
        folder = Path(name)
        monkeypatch.setenv("SLURM_CONF", str(configured(folder)))
        for words in (munged(folder), ["slurmctld", "-D", "-i"], ["slurmd", "-D"]):
            log = daemons.enter_context((folder / f"{words[0]}.out").open("wb"))
            daemon = subprocess.Popen(words, stdout=log, stderr=log)
            daemons.callback(daemon.wait)
            daemons.callback(daemon.terminate)
        end = time.monotonic() + 60
        while said := asked():
            assert time.monotonic() < end, said + "".join(own.read_text("utf-8") for own in folder.glob("*.out"))
            time.sleep(0.2)
        yield


def configured(folder: Path) -> Path:
    """Write the configuration of a Slurm of this node alone, and the key of its daemons."""
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    (folder / "key").write_bytes(os.urandom(64))
    (folder / "key").chmod(0o400)
    # munged wants that everybody may reach its socket.
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        controller, node = (own.getsockname()[1] for own in (one, other))
    host = socket.gethostname().split(".")[0]
    path = folder / "slurm.conf"
    path.write_text(SLURM.format(host=host, folder=folder, controller=controller, node=node), encoding="utf-8")
    return path


def munged(folder: Path) -> list[str]:
    """Return how the daemon is started that vouches for the others."""
    files = [f"--{kind}-file={folder}/munged.{kind}" for kind in ("log", "pid", "seed")]
    return ["munged", "--foreground", "--force", f"--socket={folder}/munge", f"--key-file={folder}/key", *files]


def asked() -> str:
    """Return what Slurm says instead of a node that takes jobs; nothing if there is one."""
    found = subprocess.run(["sinfo", "--noheader", "--format=%T"], check=False, capture_output=True, text=True)
    return "" if {"idle", "mixed", "allocated"} & set(found.stdout.split()) else f"sinfo: {found.stdout}{found.stderr}"


@pytest.mark.usefixtures("slurm")
def test_slurm_runs_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SWEEP, encoding="utf-8")
    assert run([str(path), "-o", str(tmp_path / "s.parquet"), "--slurm"]) == 0
    assert run([str(path), "-o", str(tmp_path / "serial.parquet"), "--workers", "1"]) == 0
    assert pq.read_metadata(tmp_path / "s.parquet").num_rows == 40
    assert (tmp_path / "s.parquet").read_bytes() == (tmp_path / "serial.parquet").read_bytes()
