#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What of others the programs have in them.

`notice` fails when NOTICE lacks a licence of what is linked or vendored; `notice --fix` writes it.

`sbom FOLDER` writes FOLDER/isthmus.spdx.json (SPDX 2.3) of the built programs in FOLDER."""

import functools
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from urllib.parse import quote

GO = {"isthmus": "./controlplane/cmd/isthmus", "isthmus-lab": "./lab/cmd/isthmus-lab",
      "isthmus-traffic": "./lab/cmd/isthmus-traffic"}
C = ["isthmus-dp", "isthmus-traffic-engine"]
DYGRAPHS = "controlplane/sheet/dygraphs"
# DPDK's inline functions are compiled into our programs. Other C libraries are the system's, whose packages have their
# licences.
DPDK = """Copyright(c) 2010-2026 Intel Corporation and the other authors of DPDK

Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
   disclaimer.
2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
   disclaimer in the documentation and/or other materials provided with the distribution.
3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote
   products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF
THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE."""
HEAD = """Isthmus, licensed under the Apache License, Version 2.0 (LICENSE).

What the programs have of others, and its licences. Made by `./dev lint --fix`.
"""


def out(*command, **env):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | env).stdout


def read(path):
    with open(path, encoding="utf-8") as f:
        return "\n".join(line.rstrip() for line in f.read().strip().splitlines())


def licence(text):
    """SPDX's expression for a licence's text."""
    kinds = {"Apache-2.0": r"Apache License,?\s+Version 2\.0", "MIT": "Permission is hereby granted, free",
             "BSD": "Redistribution and use in source"}
    found = [name for name, pattern in kinds.items() if re.search(pattern, text)]
    expression = " AND ".join(found).replace("BSD", "BSD-3-Clause" if "endorse or promote" in text else "BSD-2-Clause")
    if not expression:
        sys.exit("a licence of no known kind:\n" + text[:500])
    return expression


def folder_licence(folder):
    names = sorted(name for name in os.listdir(folder) if re.match(r"LICEN[SC]E|COPYING", name))
    if not names:
        sys.exit(f"{folder} has no licence")
    return read(f"{folder}/{names[0]}")


def linked_modules():
    """(module, version, its folder): the same on every machine."""
    form = "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"
    rows = out("go", "list", "-deps", "-f", form, *GO.values(), GOOS="linux", GOARCH="amd64", CGO_ENABLED="0")
    return sorted(set(tuple(row.split(" ", 2)) for row in rows.splitlines() if row))


def dygraphs():
    return re.match(r"# dygraphs (\S+)", read(f"{DYGRAPHS}/README.md")).group(1)


def notice():
    """Each text once. The text of Apache-2.0 is LICENSE; what its modules add is their NOTICE (section 4 d)."""
    texts = {}
    for name, version, folder in linked_modules():
        text, more = folder_licence(folder), read(f"{folder}/NOTICE") if os.path.exists(f"{folder}/NOTICE") else ""
        # x/sys has the licence of Go itself.
        names = [f"{name} {version}"] + ["the standard library of Go"] * (name == "golang.org/x/sys")
        if licence(text) == "Apache-2.0":
            text, names = "", [names[0] + " (Apache-2.0)"]
        text = "\n\n".join(filter(None, [text, more]))
        texts.setdefault(text, []).extend(names)
    texts.setdefault(folder_licence(DYGRAPHS), []).append(f"dygraphs {dygraphs()}")
    texts.setdefault(DPDK, []).append("DPDK")
    return HEAD + "".join(f"\n{'-' * 78}\n" + "\n".join(names) + "\n" + (f"\n{text}\n" if text else "")
                          for text, names in sorted(texts.items(), key=lambda row: row[1]))


def package(name, version, declared, purl="", **more):
    refs = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}] if purl else []
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}"), "name": name,
            "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": declared, "copyrightText": "NOASSERTION",
            **({"externalRefs": refs} if refs else {}), **more}


def go_parts(program, licences):
    """The tool chain and the modules that the program says it was built of."""
    lines = out("go", "version", "-m", program).splitlines()
    go = lines[0].split()[-1].removeprefix("go")
    yield package("stdlib", go, "BSD-3-Clause", f"pkg:golang/stdlib@{go}")
    for _, kind, name, version, *_ in (line.split("\t") for line in lines if line.count("\t") >= 3):
        if kind == "dep":
            yield package(name, version, licences.get(name, "NOASSERTION"), f"pkg:golang/{name}@{version}")


def objects(*files):
    """The shared objects that ELF files load at their start, as the files' machine finds them: with the loader."""
    return sorted({path for file in files for path in re.findall(r"(/\S+) \(0x", out("ldd", file))})


@functools.cache
def owners(paths):
    """The packages of files of the system, in one question: dpkg reads all of its lists for each."""
    names = {path: {path, os.path.realpath(path), path.removeprefix("/usr"), "/usr" + path} for path in paths}
    said = subprocess.run(["dpkg", "-S", *sorted(set().union(*names.values()))], capture_output=True, text=True,
                          check=False).stdout
    of = {path: owner.split(", ")[0] for owner, path in re.findall(r"^(\S+(?:, \S+)*): (/.*)$", said, re.M)}
    found = {path: {of[name] for name in have if name in of} for path, have in names.items()}
    for path in paths:
        if not found[path]:
            sys.exit(f"{path} is of no package")
    return sorted({min(have) for have in found.values()})


def c_parts(paths):
    """The packages of shared libraries."""
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', read("/etc/os-release"), re.M))
    form = "${Package} ${Version} ${Architecture}\n"
    for line in out("dpkg-query", "-W", "-f", form, *owners(tuple(paths))).splitlines():
        name, version, arch = line.split()
        yield package(name, version, "BSD-3-Clause" if name.startswith("librte-") else "NOASSERTION",
                      f"pkg:deb/{system['ID']}/{quote(name)}@{quote(version)}?arch={arch}")


def built(folder):
    """The programs of a build folder."""
    for name in [*GO, *C]:
        path = os.path.realpath(f"{folder}/{name}")
        yield path
        yield from sorted(p for p in glob.glob(path + "-*") if name in C and os.access(p, os.X_OK))


def bill(files, drivers=()):
    """Of programs, of which one is isthmus; drivers are shared objects that those in C load later."""
    licences = {name: licence(folder_licence(at)) for name, _, at in linked_modules()}
    version = out(next(file for file in files if file.endswith("/isthmus")), "--version").split()[-1]
    packages, relations = {}, []
    for file in files:
        name = os.path.basename(file)
        with open(file, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        whole = package(name, version, "Apache-2.0", primaryPackagePurpose="APPLICATION", packageFileName=name,
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        parts = list(go_parts(file, licences) if name in GO else c_parts([*objects(file, *drivers), *drivers]))
        if name == "isthmus":
            parts.append(package("dygraphs", dygraphs(), "MIT", f"pkg:npm/dygraphs@{dygraphs()}"))
        packages[whole["SPDXID"]] = whole
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", whole["SPDXID"]))
        for part in parts:
            packages[part["SPDXID"]] = part
            how = "STATIC_LINK" if name in GO else "DYNAMIC_LINK"
            relations.append((whole["SPDXID"], how, part["SPDXID"]))
    body = json.dumps([packages, relations], sort_keys=True).encode()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 0)) or time.time()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"isthmus-{version}",
            "documentNamespace": f"https://isthmus.invalid/spdx/{hashlib.sha256(body).hexdigest()}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
                             "creators": ["Tool: isthmus-components"]},
            "packages": list(packages.values()),
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                              for a, kind, b in relations]}


def main():
    if sys.argv[1:2] == ["notice"]:
        text = notice()
        if "--fix" in sys.argv:
            with open("NOTICE", "w", encoding="utf-8") as f:
                f.write(text)
        elif not os.path.exists("NOTICE") or open("NOTICE", encoding="utf-8").read() != text:
            sys.exit("NOTICE is not what is linked now: ./dev lint --fix")
    elif len(sys.argv) == 3 and sys.argv[1] == "sbom":
        with open(f"{sys.argv[2]}/isthmus.spdx.json", "w", encoding="utf-8") as f:
            json.dump(bill(list(built(sys.argv[2]))), f, indent=1)
            f.write("\n")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
