#!/usr/bin/env python3
"""Sweeps on this machine and through Slurm. usage: sweep_test.py GRIDLOOM PROGRAM local|slurm

`slurm` starts Slurm's own controller and node daemon with a configuration of its own in a temporary folder, submits the sweep to it and
compares the report with that of the same sweep run here. One task is made to fail, first once (it is retried), then always (it is reported by name).
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SWEEP = """
traces: [one.gltrace]
mixes:
  twice: [one.gltrace, one.gltrace]
devices: [gtx480, v100]
policies: [serial, leftover]
report: %s
slurm:
  tasks: 4
  cpus: 1
  retries: 1
"""


def run(command, folder, code=0, **options):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options)
    if done.returncode != code:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Slurm:
    """A cluster of this machine alone."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        for part in "state", "spool", "log", "munge":
            os.makedirs(os.path.join(folder, part), mode=0o700)
        with open(os.path.join(folder, "munge", "key"), "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(os.path.join(folder, "munge", "key"), 0o400)
        host = socket.gethostname().split(".")[0]
        with open(os.path.join(folder, "slurm.conf"), "w") as conf:
            conf.write(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        with open(os.path.join(folder, "cgroup.conf"), "w") as conf:
            conf.write("CgroupPlugin=cgroup/v1\n")
        os.environ["SLURM_CONF"] = os.path.join(folder, "slurm.conf")

    def start(self, *command):
        with open(os.path.join(self.folder, "log", os.path.basename(command[0]) + ".out"), "w") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def __enter__(self):
        munge = os.path.join(self.folder, "munge")
        self.start("munged", "--force", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                   f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.wait("munge", lambda: os.path.exists(f"{munge}/socket"))
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D")
        self.wait("a node", lambda: "idle" in subprocess.run(["sinfo", "--noheader", "--format=%T"], stdout=subprocess.PIPE,
                                                             stderr=subprocess.DEVNULL, text=True).stdout)
        return self

    def wait(self, what, there):
        deadline = time.monotonic() + 60
        while not there():
            if time.monotonic() > deadline:
                logs = "".join(open(os.path.join(self.folder, "log", name), errors="replace").read()[-1500:] for name in os.listdir(os.path.join(self.folder, "log")))
                sys.exit(f"Slurm does not start: no {what} after a minute\n{logs}")
            time.sleep(0.2)

    def __exit__(self, *unused):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def results(*path):
    return sorted(name for name in os.listdir(os.path.join(*path, "cells")) if name.endswith(".json"))


def same_results(folder, one, other):
    for name in "runs.csv", "kernels.csv":
        assert read(folder, one, name) == read(folder, other, name), f"{name} of {one} and {other} differ"
    assert results(folder, one) == results(folder, other)


def local(gridloom, folder):
    done = run([gridloom, "sweep", "--on", "local", "local.yaml"], folder)
    assert "8 replays on this machine" in done.stderr, done.stderr
    cells = os.path.join(folder, "local", "cells")
    gone = sorted(os.listdir(cells))[0]
    os.remove(os.path.join(cells, gone))
    missing = run([gridloom, "sweep", "--gather", "local.yaml"], folder, 125)
    assert missing.stderr.count("no result") == 1 and "on gtx480 under leftover: no result" in missing.stderr, missing.stderr
    again = run([gridloom, "sweep", "--on", "local", "local.yaml"], folder)
    assert "7 of 8 replays are finished" in again.stderr, again.stderr
    written = run([gridloom, "sweep", "--write", "--report", "written", "local.yaml"], folder)
    assert "sbatch --array=0-3" in written.stdout, written.stdout
    for task in range(4):  # what the script does
        run([gridloom, "sweep", os.path.join(folder, "written", "sweep.json"), "--task", str(task)], folder)
    run([gridloom, "sweep", "--gather", "--report", "written", "local.yaml"], folder)
    same_results(folder, "local", "written")


def slurm(gridloom, folder):
    run([gridloom, "sweep", "--on", "local", "local.yaml"], folder)
    done = run([gridloom, "sweep", "slurm.yaml"], folder)  # sbatch is found
    assert "4 tasks for 8 replays" in done.stderr, done.stderr
    same_results(folder, "local", "slurm")

    # A task of which one result cannot be written, in the first attempt: retried.
    shutil.rmtree(os.path.join(folder, "slurm"))
    script = os.path.join(folder, "flaky")
    with open(script, "w") as file:
        file.write(f'#!/bin/bash\nif [ "$SLURM_ARRAY_TASK_ID" = 2 ] && [ ! -e {folder}/failed ]; then touch {folder}/failed; echo out of luck; exit 3; fi\n')
    run_through_prolog = {**os.environ, "BASH_ENV": script}  # bash of the batch script reads it first
    done = run([gridloom, "sweep", "--on", "slurm", "slurm.yaml"], folder, env=run_through_prolog)
    assert "1 tasks for 2 replays, which failed before" in done.stderr, done.stderr
    same_results(folder, "local", "slurm")

    # One that always fails: named, the others are there.
    shutil.rmtree(os.path.join(folder, "slurm"))
    with open(script, "w") as file:
        file.write('#!/bin/bash\nif [ "$SLURM_ARRAY_TASK_ID" = 1 ]; then echo out of luck; exit 3; fi\n')
    done = run([gridloom, "sweep", "--on", "slurm", "slurm.yaml"], folder, 125, env=run_through_prolog)
    assert done.stderr.count("no result; task 1 of job") == 2 and "said: out of luck" in done.stderr, done.stderr
    assert len(results(folder, "slurm")) == 6
    assert b"out of luck" in read(folder, "slurm", "report.json")

    # Submitted without waiting, gathered later.
    done = run([gridloom, "sweep", "--no-wait", "slurm.yaml"], folder)
    assert "gridloom sweep --gather" in done.stdout, done.stdout
    deadline = time.monotonic() + 60
    while len(results(folder, "slurm")) < 8 and time.monotonic() < deadline:
        time.sleep(0.2)
    run([gridloom, "sweep", "--gather", "slurm.yaml"], folder)
    same_results(folder, "local", "slurm")


def main():
    gridloom, program, where = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    if where == "slurm":
        missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo") if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
        if missing or os.geteuid() != 0:
            why = f"{missing[0]} is not installed (scripts/setup --slurm)" if missing else "Slurm's daemons need root"
            print(f"skipped: {why}")
            sys.exit(77)
        os.environ["PATH"] += ":/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory() as folder:
        run([gridloom, "run", "--trace", "one.gltrace", "--", program], folder)
        for name in "local", "slurm":
            with open(os.path.join(folder, name + ".yaml"), "w") as file:
                file.write(SWEEP % name)
        if where == "local":
            local(gridloom, folder)
        else:
            with Slurm(os.path.join(folder, "cluster")):
                slurm(gridloom, folder)
        print(f"sweep of 8 replays, {where}")


main()
