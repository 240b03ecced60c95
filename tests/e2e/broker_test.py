#!/usr/bin/env python3
"""broker_test.py GRIDLOOM APPS CASE [STAND_IN]: real programs under a real broker.

Cases: together (eight different programs at once give what they give alone), tenant_killed, running_killed (a session that an
operator ends while a kernel runs that would not end), waiting_kernels (kernels that wait for each other), broker_killed,
broker_killed_fail, restart, faulting, memory, operator, caps and weights (two endless programs get their shares within 5 points), real (as together, each
with --device real, in slices of five CTAs; STAND_IN, the virtual GPU or a GPU's driver, is the real driver), real_weights (as weights, likewise), real_code_weights
(the same, and the second program is that of the folder $GRIDLOOM_CODE_APPS, without PTX: for a GPU), nvml (the management library of a program that joins a broker tells of all tenants).
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

GRIDLOOM, APPS, CASE = sys.argv[1:4]
STAND_IN = sys.argv[4] if len(sys.argv) > 4 else None
TOGETHER = ["vectoradd", "shared_memory", "control_flow", "warp_shuffles", "streams_and_events", "graphs_explicit", "dynamic_parallelism",
            "cooperative_groups"]
# Kernels with constants, variables that the host and other kernels use too, parameters of all kinds, parts that are linked, waits.
ON_REAL = ["vectoradd", "constant_memory", "device_symbols", "kernel_parameters", "separate_compilation", "managed_memory", "launch_shapes",
           "function_pointers", "driver_modules", "streams_and_events"]
FOLDER = tempfile.TemporaryDirectory(prefix="gridloom-e2e-")
SOCKET = os.path.join(FOLDER.name, "socket")
PATIENCE = 240
STARTED = []


def app(name):
    return os.path.join(APPS, name)


def start_broker(*options):
    broker = subprocess.Popen([GRIDLOOM, "daemon", "--socket", SOCKET, "--state", os.path.join(FOLDER.name, "state"), *options],
                              stderr=subprocess.PIPE)
    STARTED.append(broker)
    line = broker.stderr.readline()
    assert b"sharing" in line, line
    return broker


def run(program, *options, connect=True, log="warn", folder=APPS, **kwargs):
    connected = ["--connect=" + SOCKET] if connect else []
    process = subprocess.Popen([GRIDLOOM, "run", "--log", log, *connected, *options, "--", os.path.join(folder, program)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **kwargs)
    STARTED.append(process)
    return process


def ask(*words):
    return json.loads(subprocess.run([GRIDLOOM, *words, "--socket", SOCKET, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long for: " + what
        time.sleep(0.05)


def tenant(name):
    return next((t for t in ask("ps")["tenants"] if t["name"] == name), None)


def check_same(name, alone, shared):
    assert alone == shared, f"{name}: alone {alone!r:.1500}\nshared {shared!r:.1500}"


def results_alone(names, *options, **kwargs):
    """Name to exit status and output of each program without a broker."""
    alone = {}
    for name in names:
        process = run(name, *options, connect=False, **kwargs)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (name, out)
        alone[name] = (process.returncode, out)
    return alone


def together():
    alone = results_alone(TOGETHER)
    broker = start_broker()
    processes = {name: run(name, "--tenant", name) for name in TOGETHER}
    for name, process in processes.items():
        out, err = process.communicate(timeout=PATIENCE)
        check_same(name, alone[name], (process.returncode, out))
        assert b"goes on without" not in err, err
    state = ask("ps")
    for name in TOGETHER:
        account = next(t for t in state["tenants"] if t["name"] == name)
        assert account["launches"] > 0 and account["ctas"] > 0, account
        assert account["faults"] == 0, account
    assert state["dropped_total"] == 0 and not state["sessions"], state
    print(", ".join(f"{t['name']} {t['launches']} launches in {t['slices']} slices" for t in state["tenants"]))
    return broker


def real():
    env = {**os.environ, "GRIDLOOM_REAL_DRIVER": STAND_IN}
    alone = results_alone(ON_REAL, "--device", "real", env=env)
    broker = start_broker()
    options = ["--device", "real", "--slice", "5"]
    processes = {name: run(name, "--tenant", name, *options, log="info", env=env) for name in ON_REAL}
    for name, process in processes.items():
        out, err = process.communicate(timeout=PATIENCE)
        check_same(name, alone[name], (process.returncode, out))
        whole = [line for line in err.decode().splitlines() if "runs whole" in line]
        assert not any("the driver" in line for line in whole), (name, whole)  # only the pass's own reasons
        assert not whole or name not in ("vectoradd", "constant_memory", "device_symbols", "kernel_parameters"), (name, whole)
    state = ask("ps")
    for name in ON_REAL:
        account = next(t for t in state["tenants"] if t["name"] == name)
        assert account["launches"] > 0 and account["faults"] == 0, account  # a program may end before its last launch is reported
    assert state["dropped_total"] == 0, state
    assert tenant("vectoradd")["slices"] > tenant("vectoradd")["launches"], tenant("vectoradd")
    print(", ".join(f"{t['name']} {t['launches']} launches in {t['slices']} grants" for t in state["tenants"]))
    return broker


def tenant_killed():
    broker = start_broker()
    victim = run("broker_load", "--tenant", "victim", env={**os.environ, "BROKER_LOAD_LAUNCHES": "0"})
    until(lambda: (tenant("victim") or {}).get("launches", 0) > 3, "launches of the victim")
    victim.kill()
    victim.wait()
    until(lambda: not ask("ps")["sessions"], "the session's end")
    other = run("vectoradd", "--tenant", "other")
    out, _ = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0, out
    assert tenant("victim")["in_flight"] == 0 and tenant("victim")["memory_bytes"] == 0
    return broker


def ends_by_itself(program):
    """What a program whose session was killed says: its running grids end, and its calls fail."""
    out, err = program.communicate(timeout=60)
    assert program.returncode == 1, (program.returncode, out, err)
    assert b"launch: cudaSuccess" in out, (out, err)
    assert b"wait: cudaErrorMpsClientTerminated" in out and b"allocation: cudaErrorMpsClientTerminated" in out, (out, err)
    assert err.count(b"an operator ended this session") == 1, err


def running_killed():
    broker = start_broker()
    # A kernel without a wait comes by no place where it could be asked to stop; the last one is interpreted.
    for kernels, tiers in (("compute", "off"), ("poll", "off"), ("barriers", "off"), ("compute", "interpret")):
        program = run("broker_kernels", env={**os.environ, "BROKER_KERNELS": kernels, "GRIDLOOM_TIERS": tiers})
        until(lambda: any(s["kernel"] for s in ask("ps")["sessions"]), "a running kernel")
        time.sleep(0.5)
        ask("kill", str(ask("ps")["sessions"][0]["pid"]))
        ends_by_itself(program)
        until(lambda: not ask("ps")["sessions"], "the session's end")
    return broker


def waiting_kernels():
    broker = start_broker()
    # As many as the device runs at a time, in two programs of one tenant and in one of another, at once.
    programs = [run("broker_kernels", "--tenant", name, env={**os.environ, "BROKER_KERNELS": "128"}) for name in ("a", "a", "b")]
    for program in programs:
        out, err = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0 and b"wait: cudaSuccess" in out, (program.returncode, out, err)
    return broker


def broker_killed(choice="embedded"):
    broker = start_broker()
    program = run("broker_load", "--on-broker-loss", choice, env={**os.environ, "BROKER_LOAD_LAUNCHES": "2000"})
    until(lambda: any(s["launches"] > 3 for s in ask("ps")["sessions"]), "launches")
    broker.kill()
    broker.wait()
    out, err = program.communicate(timeout=PATIENCE)
    if choice == "embedded":
        assert program.returncode == 0 and b"PASS" in out, (program.returncode, out, err)
        assert b"goes on without it" in err, err
    else:
        assert program.returncode != 0 and b"PASS" not in out, (program.returncode, out)
        assert err.count(b"no kernel runs any more") == 1, err
    return None


def restart():
    broker = start_broker()
    program = run("broker_load", env={**os.environ, "BROKER_LOAD_LAUNCHES": "0"})  # until it is told to stop
    until(lambda: any(s["launches"] > 3 for s in ask("ps")["sessions"]), "launches")
    before = ask("ps")["tenants"][0]["launches"]
    time.sleep(1.5)  # accounts are written every second
    broker.kill()
    broker.wait()
    broker = start_broker()
    until(lambda: any(s["launches"] > 3 for s in ask("ps")["sessions"]), "launches after the restart")
    assert ask("ps")["tenants"][0]["launches"] > before, "accounts were lost"
    program.send_signal(signal.SIGTERM)
    _, err = program.communicate(timeout=PATIENCE)
    back = [line for line in err.splitlines() if b" is back, " in line]
    assert len(back) == 1 and b"schedules this program's launches from now on" in back[0] and b"goes on without" not in back[0], err
    return broker


def faulting():
    broker = start_broker()
    good = run("broker_load", "--tenant", "good", env={**os.environ, "BROKER_LOAD_LAUNCHES": "100"})
    alone = run("illegal_address", connect=False)
    bad = run("illegal_address", "--tenant", "bad")
    out_alone, _ = alone.communicate(timeout=PATIENCE)
    out, _ = bad.communicate(timeout=PATIENCE)
    check_same("illegal_address", (alone.returncode, out_alone), (bad.returncode, out))
    out, err = good.communicate(timeout=PATIENCE)
    assert good.returncode == 0 and b"PASS" in out, (out, err)
    assert tenant("bad")["faults"] > 0 and tenant("good")["faults"] == 0, ask("ps")
    return broker


def memory():
    config = os.path.join(FOLDER.name, "broker.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("tenants:\n  small: {memory: 64M}\n")
    broker = start_broker("--config", config)
    env = {**os.environ, "BROKER_LOAD_LAUNCHES": "1", "BROKER_LOAD_MEMORY": str(1 << 20)}
    for wanted, fits in ((48 << 20, True), (80 << 20, False)):
        env["BROKER_LOAD_MEMORY"] = str(wanted)
        process = run("broker_load", "--tenant", "small", env=env)
        out, _ = process.communicate(timeout=PATIENCE)
        assert (process.returncode == 0) == fits, (wanted, out)
        assert b"total 67108864" in out, out
        if not fits:
            assert b"out of memory" in out, out
    ask("limits", "small", "--memory", "128M")
    process = run("broker_load", "--tenant", "small", env=env)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and b"total 134217728" in out, out
    return broker


def operator():
    broker = start_broker()
    victim = run("broker_load", "--tenant", "victim", env={**os.environ, "BROKER_LOAD_LAUNCHES": "0"})
    until(lambda: (tenant("victim") or {}).get("launches", 0) > 3, "launches")
    assert ask("limits", "victim", "--weight", "3")["limits"]["weight"] == 3
    assert ask("limits", "--policy", "serial")["policy"] == "serial"
    text = subprocess.run([GRIDLOOM, "top", "-n", "1", "-i", "0.3", "--socket", SOCKET], check=True, stdout=subprocess.PIPE).stdout
    assert b"victim" in text and b"DEVICE %" in text, text
    wrong = subprocess.run([GRIDLOOM, "limits", "victm", "--socket", SOCKET], check=False, stderr=subprocess.PIPE)
    assert wrong.returncode == 125 and b"did you mean 'victim'" in wrong.stderr, wrong
    ask("kill", "victim")
    out, err = victim.communicate(timeout=PATIENCE)
    assert victim.returncode not in (0, -9) and b"an operator ended this session" in err, (victim.returncode, out, err)
    victim = run("broker_load", "--tenant", "victim", env={**os.environ, "BROKER_LOAD_LAUNCHES": "0"})
    until(lambda: ask("ps")["sessions"], "the second session")
    ask("kill", "--process", str(ask("ps")["sessions"][0]["pid"]))
    victim.communicate(timeout=PATIENCE)
    assert victim.returncode == -9, victim.returncode

    def missing():
        with open(os.path.join(FOLDER.name, "state", "audit.jsonl"), encoding="utf-8") as log:
            text = log.read()
        events = [json.loads(line)["event"] for line in text[:text.rfind("\n") + 1].splitlines()]
        return [e for e in ("start", "connect", "limits", "policy", "killed") if e not in events]

    until(lambda: not missing(), "the audit log")
    return broker


def shares(seconds, key, *options, second=APPS):
    """What two endless programs get of `key` (and how much time passes), by tenant, from when both have begun."""
    # A launch is many slices, of a few ms each, on a fast processor, too: between two launches a program is away, on a busy machine for
    # longer than `fair` waits, and loses what that takes.
    env = {**os.environ, "BROKER_LOAD_LAUNCHES": "0", "BROKER_LOAD_ROUNDS": "20000"}
    if STAND_IN is not None:
        env["GRIDLOOM_REAL_DRIVER"] = STAND_IN
    programs = [run("broker_load", "--tenant", name, *options, env=env, folder=folder) for name, folder in (("a", APPS), ("b", second))]
    until(lambda: all((tenant(name) or {}).get("launches", 0) > 3 for name in ("a", "b")), "launches of both")
    time.sleep(1)  # bursts and first guesses are over
    before = ask("ps")
    time.sleep(seconds)
    after = ask("ps")
    for program in programs:
        program.kill()
        program.wait()

    def of(state, name):
        return next(t[key] for t in state["tenants"] if t["name"] == name)

    return after["uptime_seconds"] - before["uptime_seconds"], {n: of(after, n) - of(before, n) for n in ("a", "b")}


def caps():
    config = os.path.join(FOLDER.name, "broker.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("policy: leftover\ntenants:\n  a: {cap: 20%}\n  b: {cap: 50%}\n")
    broker = start_broker("--config", config)
    passed, had = shares(6, "device_seconds")
    print({name: value / passed for name, value in had.items()})
    assert abs(had["a"] / passed - 0.2) <= 0.05 and abs(had["b"] / passed - 0.5) <= 0.05, (passed, had)
    return broker


def weights(*options, second=APPS):
    config = os.path.join(FOLDER.name, "broker.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("policy: fair\ntenants:\n  a: {weight: 3}\n  b: {weight: 1}\n")
    broker = start_broker("--config", config)
    passed, had = shares(6, "device_seconds", *options, second=second)
    share = had["a"] / (had["a"] + had["b"])
    print({name: value / passed for name, value in had.items()}, share)
    assert abs(share - 0.75) <= 0.05, (passed, had)
    return broker


class Viewer:
    """nvml_view.py under the broker; with `mib` it has a context and that much memory."""

    def __init__(self, mib=None):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvml_view.py")
        self.process = subprocess.Popen([GRIDLOOM, "run", "--connect=" + SOCKET, "--tenant", "viewer", "--", sys.executable, script,
                                         *([str(mib)] if mib else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        STARTED.append(self.process)
        self.pid = self.process.pid

    def see(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.wait()
        return json.loads(line)

    def end(self):
        self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, self.process.returncode


def check_seen(seen, loads, viewer):
    """What NVML tells is what the broker does."""
    state = ask("ps")
    wanted = sorted([s["pid"], s["memory_bytes"]] for s in state["sessions"])
    assert sorted(pid for pid, _ in wanted) == sorted([*(p.pid for p in loads), viewer.pid]), (wanted, viewer.pid)
    assert all(processes == wanted for processes in seen["lists"]), (seen, wanted)
    used, total = sum(t["memory_bytes"] for t in state["tenants"]), state["device_memory_bytes"]
    assert used > 150 << 20 and seen["memory"] == seen["memory_2"] == [total, total - used, used], (seen, used, total)
    assert all(seen["names"][str(p.pid)] == app("broker_load") for p in loads), seen
    assert "A100" in seen["name"], seen
    assert 0 < seen["utilisation"] <= 100, seen
    shares = dict(seen["samples"])
    assert sorted(shares) == sorted(p.pid for p in loads), (shares, viewer.pid)  # the viewer runs nothing
    assert all(0 < share <= 100 for share in shares.values()) and sum(shares.values()) <= 101, shares


def nvml():
    broker = start_broker("--device", "a100")
    loads = [run("broker_load", "--tenant", name, env={**os.environ, "BROKER_LOAD_LAUNCHES": "0", "BROKER_LOAD_ROUNDS": "20000",
                                                       "BROKER_LOAD_MEMORY": str(mib << 20)}) for name, mib in (("a", 40), ("b", 100))]
    until(lambda: all((tenant(name) or {}).get("launches", 0) > 3 for name in ("a", "b")), "launches of both")
    viewer, onlooker = Viewer(16), Viewer()
    viewer.see()
    check_seen(viewer.see(), loads, viewer)
    check_seen(onlooker.see(), loads, viewer)
    # A broker that does not answer: each knows of itself.
    broker.send_signal(signal.SIGSTOP)
    seen = viewer.see()
    assert all(processes == [[viewer.pid, 16 << 20]] for processes in seen["lists"]), seen
    assert seen["memory"][2] == 16 << 20 and seen["utilisation"] == 0 and not seen["samples"], seen
    seen = onlooker.see()
    assert not any(seen["lists"]) and seen["memory"][2] == 0 and seen["utilisation"] == 0, seen
    broker.send_signal(signal.SIGCONT)
    until(lambda: len(onlooker.see()["lists"][0]) == 3, "the broker's answer")
    for load in loads:
        load.kill()
        load.wait()
    until(lambda: [pid for pid, _ in onlooker.see()["lists"][0]] == [viewer.pid], "the ends of both")
    until(lambda: onlooker.see()["utilisation"] == 0, "an idle device")
    viewer.end()
    onlooker.end()
    return broker


def main():
    cases = {"together": together, "tenant_killed": tenant_killed, "running_killed": running_killed,
             "waiting_kernels": waiting_kernels, "broker_killed": broker_killed,
             "broker_killed_fail": lambda: broker_killed("fail"), "restart": restart, "faulting": faulting, "memory": memory,
             "operator": operator, "caps": caps, "weights": weights, "real": real,
             "real_weights": lambda: weights("--device", "real"),
             "real_code_weights": lambda: weights("--device", "real", "--slice-machine-code", second=os.environ["GRIDLOOM_CODE_APPS"]),
             "nvml": nvml}
    try:
        broker = cases[CASE]()
    except BaseException:
        for process in STARTED:  # who waits for this test waits for all that have its output
            process.kill()
        raise
    if broker is not None:
        broker.terminate()
        assert broker.wait(timeout=PATIENCE) == 0
    print("PASS", CASE)


main()
