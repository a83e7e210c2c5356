# SPDX-License-Identifier: Apache-2.0
"""What the tests with FreeRADIUS share: requests to the gateway by radclient, and the records that accounting sent."""

import json
import os
import subprocess
import time

from frames import DIR, wait_until


def subscriber(what):
    return json.loads(subprocess.check_output([os.environ["BIN"] + "/isthmus", "show", "subscriber", what, "-j"]))[0]


def stop_server():
    """FreeRADIUS ends; start_server() starts it again."""
    subprocess.run(["pkill", "-x", "freeradius"], check=True)  # of the test's own process namespace
    wait_until(lambda: subprocess.run(["pgrep", "-x", "-r", "R,S,D", "freeradius"], capture_output=True).returncode,
               "FreeRADIUS to end")


def start_server():
    # Started as freeradius.sh does; the requests that it gets before it is ready come again.
    return subprocess.Popen(os.environ["FREERADIUS"].split())


def radclient(what, attributes):
    """Sends a request to the gateway; the answer's lines."""
    request = f"Event-Timestamp = {int(time.time())}\n{attributes}\n"
    command = f"nsenter --net=/run/netns/gateway -- radclient -x -r 1 -t 3 127.0.0.1:3799 {what} example-only".split()
    out = subprocess.run(command, input=request, capture_output=True, text=True)
    return out.stdout + out.stderr


def records():
    """Accounting as FreeRADIUS received it: attributes of each record."""
    try:
        with open(f"{DIR}/raddb/detail", encoding="utf-8") as f:
            blocks = f.read().split("\n\n")
    except FileNotFoundError:
        return []
    attributes = [[line.strip().split(" = ", 1) for line in b.splitlines()[1:] if " = " in line] for b in blocks]
    return [dict(pairs) for pairs in attributes if pairs]


def of_kind(kind):
    return [r for r in records() if r.get("Acct-Status-Type") == kind]
