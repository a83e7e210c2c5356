#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the OCI image of an installed tree.

usage: image.py TREE FILE

FILE is one archive for both: `docker load` and podman's docker-archive:, and an OCI archive. It holds the programs of
TREE, their shared objects, DPDK's drivers of this list, licences and the bill of materials. The same tree and system
packages make the same octets. SOURCE_DATE_EPOCH dates all."""

import glob
import gzip
import hashlib
import io
import json
import os
import re
import stat
import sys
import tarfile
import time

import components

# Of the programs the gateway alone: no laboratory, no tester, no manual.
TAKEN = ["usr/bin/isthmus", "usr/bin/isthmus-dp", "usr/lib/isthmus"]
# Buses, memory, ports without a card; cards of servers and of virtual machines. Others: add a name.
DRIVERS = """bus_pci bus_vdev bus_auxiliary bus_vmbus mempool_ring
net_af_packet net_af_xdp net_bond net_memif net_pcap net_tap net_vhost net_virtio
net_bnxt net_e1000 net_i40e net_iavf net_ice net_igc net_ixgbe net_mlx5
net_ena net_gve net_netvsc net_vmxnet3""".split()
USER = 65532  # the number that images without a base have for a user without rights
# Its group is 0: a process of the user 0, which docker and Kubernetes give capabilities to, shares its sockets.
STATE = ["run/isthmus", "var/lib/isthmus"]  # written to; volumes
ARCHITECTURES = {62: "amd64", 183: "arm64"}  # of ELF's e_machine
PASSWD = f"root:x:0:0:root:/:/\nisthmus:x:{USER}:0:Isthmus:/var/lib/isthmus:/\n"
GROUP = "root:x:0:\n"


def driver_files():
    """The links in DPDK's folder of drivers. EAL loads each file there: a copy beside the library would be loaded
    twice, and registers twice."""
    eal = components.objects(*glob.glob("/usr/lib/*/librte_bus_vdev.so.*[0-9]"))
    eal = os.path.realpath(next(path for path in eal if "/librte_eal.so." in path))
    number = eal.split(".so.")[1]
    folder = f"{os.path.dirname(eal)}/dpdk/pmds-{number}"
    paths = [f"{folder}/librte_{name}.so.{number.split('.')[0]}" for name in DRIVERS]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        sys.exit(f"DPDK's drivers are missing: {' '.join(missing)}")
    return paths


class Layer:
    """The files of the image by name: (mode, owner, content or, of a link, its target)."""

    def __init__(self):
        self.entries = {}

    def parent(self, name):
        above = os.path.dirname(name)
        if above and above not in self.entries:
            self.folder(above)

    def folder(self, name, mode=0o755, owner=0):
        self.parent(name)
        self.entries[name] = (stat.S_IFDIR | mode, owner, b"")

    def file(self, name, content, mode=0o644):
        self.parent(name)
        self.entries[name] = (stat.S_IFREG | mode, 0, content)

    def link(self, name, target):
        self.parent(name)
        self.entries[name] = (stat.S_IFLNK | 0o777, 0, target)

    def of_system(self, path):
        """A file of this machine, under its name without links of folders, as /lib is. Links stay links."""
        path = f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}"
        if path[1:] in self.entries:
            return
        if os.path.islink(path):
            target = os.readlink(path)
            self.link(path[1:], target)
            self.of_system(os.path.join(os.path.dirname(path), target))
        else:
            self.file(path[1:], read(path), 0o755)

    def of_tree(self, tree, name):
        path = f"{tree}/{name}"
        if os.path.islink(path):
            self.link(name, os.readlink(path))
        elif os.path.isdir(path):
            for inner in sorted(os.listdir(path)):
                self.of_tree(tree, f"{name}/{inner}")
        else:
            self.file(name, read(path), 0o755 if os.access(path, os.X_OK) else 0o644)

    def tar(self, date):
        """The same octets for the same files. Equal files are links, as the licences of DPDK's packages are."""
        out, have = io.BytesIO(), {}
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, (mode, owner, content) in sorted(self.entries.items()):
                entry = tarfile.TarInfo(name)
                entry.mode, entry.uid, entry.mtime = stat.S_IMODE(mode), owner, date
                if stat.S_ISDIR(mode):
                    entry.type = tarfile.DIRTYPE
                elif stat.S_ISLNK(mode):
                    entry.type, entry.linkname = tarfile.SYMTYPE, content
                elif have.setdefault((mode, content), name) != name:
                    entry.type, entry.linkname = tarfile.LNKTYPE, have[mode, content]
                else:
                    entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content) if entry.isreg() else None)
        return out.getvalue()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def is_elf(path):
    return os.path.isfile(path) and not os.path.islink(path) and read(path)[:4] == b"\x7fELF"


def fill(tree):
    """The layer's files, and the version that the programs say."""
    layer, drivers = Layer(), driver_files()
    for name in ["lib", "lib64"]:
        if os.path.islink(f"/{name}"):
            layer.link(name, os.readlink(f"/{name}"))
    layer.file("etc/passwd", PASSWD.encode())
    layer.file("etc/group", GROUP.encode())
    for name in TAKEN:
        layer.of_tree(tree, name)
    programs = [f"{tree}/{name}" for name in sorted(layer.entries) if is_elf(f"{tree}/{name}")]
    shared = components.objects(*programs, *drivers)
    for path in [*shared, *drivers]:
        layer.of_system(path)
    layer.folder("etc/isthmus")  # the configuration is mounted
    layer.folder("tmp", 0o1777)
    for name in STATE:
        layer.folder(name, 0o770, USER)
    papers = "usr/share/doc/isthmus"
    for name in ["LICENSE", "NOTICE"]:
        layer.file(f"{papers}/{name}", read(name))
    bill = components.bill(programs, drivers)
    layer.file(f"{papers}/isthmus.spdx.json", json.dumps(bill, indent=1).encode() + b"\n")
    for owner in components.owners((*shared, *drivers)):
        name = owner.split(":")[0]
        layer.file(f"usr/share/doc/{name}/copyright", read(f"/usr/share/doc/{name}/copyright"))
    machine = int.from_bytes(read(programs[0])[18:20], "little")
    return layer, ARCHITECTURES[machine], bill["name"].removeprefix("isthmus-")


def configuration(architecture, version, date, layer):
    labels = {"title": "isthmus", "description": "Telecom user plane: BNG, AGF, UPF, SGW-U, PGW-U and router",
              "version": version, "revision": os.environ.get("ISTHMUS_REVISION", ""), "created": date,
              "licenses": "Apache-2.0"}
    return {"created": date, "architecture": architecture, "os": "linux",
            "config": {"User": f"{USER}:0", "Env": ["PATH=/usr/bin", "RUNTIME_DIRECTORY=/run/isthmus"],
                       "Entrypoint": ["isthmus"], "Cmd": ["run", "--stop-both", "-c", "/etc/isthmus/isthmus.yaml"],
                       "Volumes": {f"/{name}": {} for name in STATE}, "WorkingDir": "/", "StopSignal": "SIGTERM",
                       "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items() if value}},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
            "history": [{"created": date, "created_by": "./dev image"}]}


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def descriptor(kind, content, **more):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(content), "size": len(content), **more}


def archive(layer, config, version):
    """One tar for both forms: oci-layout and index.json, manifest.json of docker."""
    packed = gzip.compress(layer, mtime=0)
    manifest = as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                        "config": descriptor("config.v1+json", config),
                        "layers": [descriptor("layer.v1.tar+gzip", packed)]})
    name = f"isthmus:{version}"
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"localhost/{name}"}
    blob = {content: f"blobs/sha256/{digest(content)[7:]}" for content in [packed, config, manifest]}
    files = Layer()
    for content, path in blob.items():
        files.file(path, content)
    files.file("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    files.file("index.json", as_json({"schemaVersion": 2, "manifests": [
        descriptor("manifest.v1+json", manifest, annotations=names)]}))
    files.file("manifest.json", as_json([{"Config": blob[config], "RepoTags": [f"localhost/{name}"],
                                          "Layers": [blob[packed]]}]))
    return files.tar(0)


def as_json(value):
    return json.dumps(value, sort_keys=True).encode()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tree, to = sys.argv[1:]
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    layer, architecture, version = fill(tree)
    content = layer.tar(epoch)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    config = as_json(configuration(architecture, version, date, content))
    with open(to, "wb") as f:
        f.write(archive(content, config, version))
    print(f"{to}: isthmus:{version}, {len(layer.entries)} files, {len(content) / 1e6:.1f} MB unpacked, "
          f"{os.path.getsize(to) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
