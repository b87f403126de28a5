"""Stand-in for `furiosa-arena`: runs a job when its state is asked, misbehaves as it is told."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

HOW = json.loads(Path(__file__).with_name("service.json").read_text())
STATE = Path(HOW["state"])
JOB = "b78a63a0"


def submit(arguments: list[str]) -> int:
    """Take a job, or say why not; one misbehaviour is not to say it."""
    if int(arguments[arguments.index("--timeout") + 1]) > 70:
        print("error: timeout exceeds the maximum of 70", file=sys.stderr)
        return 1
    tries = sum(json.loads(line)[0] == "submit" for line in (STATE / "calls").open())
    if tries <= HOW.get("refusals", 0):
        print("error: 2 concurrent jobs per account", file=sys.stderr)
        return 1
    if HOW.get("swallows"):
        return 0
    for file in arguments[: arguments.index("--name")]:
        shutil.copy(file, STATE)
    print(f"submitted job {JOB}")
    return 0


def status() -> int:
    """Run the job, unless it is to stay as it is."""
    if HOW.get("silent"):
        return 1
    state = HOW.get("stays")
    code = 0
    if state is None:
        ran = subprocess.run(["sh", "job.sh"], cwd=STATE, capture_output=True, text=True)
        lines = ran.stdout.splitlines(keepends=True)[: HOW.get("lines")]
        (STATE / "log").write_text("" if HOW.get("no_log") else "".join(lines))
        code = HOW.get("exit_code", ran.returncode)
        state = "succeeded" if code == 0 else "failed"
    else:
        (STATE / "log").write_text("")
    print(f"{JOB} {state} exit_code={code}")
    return 0


def main() -> int:
    """Do what the command line says, and note it."""
    with (STATE / "calls").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    match sys.argv[1]:
        case "submit":
            return submit(sys.argv[2:])
        case "status":
            return status()
        case "logs":
            print((STATE / "log").read_text(), end="")
            return 0
        case _:
            return 0


if __name__ == "__main__":
    sys.exit(main())
