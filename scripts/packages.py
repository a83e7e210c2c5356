#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a .deb and an .rpm of each package in deploy/package/control, of the files that LIST says (scripts/package.sh).
Both need other packages by the libraries that their programs have: dpkg-shlibdeps and rpmbuild read these.

usage: packages.py ROOT LIST VERSION FOLDER; the time is SOURCE_DATE_EPOCH. Leaves FOLDER/NAME_VERSION_ARCH.deb and
FOLDER/NAME-VERSION-1.ARCH.rpm."""

import email.utils
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = "deploy/package"
PEOPLE = "The Isthmus authors <maintainers@isthmus.example>"
SCRIPTED = ("isthmus", "isthmus-dp")  # packages with a unit
CHANGES = "What is new: /usr/share/doc/isthmus/CHANGELOG.md."
ELF = b"\x7fELF"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def out(*command, **how):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **how).stdout.strip()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def script(package, name, body):
    head = f"#!/bin/sh\nset -e\npackage={package} script={name}\n"
    return head + read(f"{HERE}/prepare.sh") + read(f"{HERE}/{body}.sh")


class Package:
    """Fields of its paragraph, and its files: (path below the root, kind)."""

    def __init__(self, paragraph, rows, root, version):
        self.fields = dict(re.findall(r"^(\w+): *((?:.*)(?:\n .*)*)", paragraph, re.M))
        self.name, self.root, self.version = self.fields["Package"], root, version
        self.files = [(path, kind) for package, path, kind in rows if package == self.name]
        self.any = self.fields["Architecture"] == "any"
        self.summary, _, self.text = self.fields["Description"].partition("\n")

    def programs(self):
        def is_elf(path):
            with open(self.root + path, "rb") as f:
                return f.read(4) == ELF
        return [self.root + path for path, _ in self.files if is_elf(path)]

    def libraries(self):
        """Debian's packages of the libraries that the programs are linked with."""
        if not self.any:
            return ""
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/debian/control", f"Source: isthmus\n\nPackage: {self.name}\nArchitecture: any\n")
            paths = [os.path.abspath(path) for path in self.programs()]
            return out("dpkg-shlibdeps", "-O", *paths, cwd=folder).partition("=")[2]

    def depends(self, field, libraries=""):
        words = self.fields.get(field, "").replace("$VERSION", self.version).replace("$LIBRARIES", libraries)
        return re.sub(r"\s+", " ", words)

    def tree(self, to):
        """A folder with its files, their modes and times."""
        for path, _ in self.files:
            os.makedirs(os.path.dirname(to + path), exist_ok=True)
            shutil.copy2(self.root + path, to + path)

    def deb(self, folder):
        arch = out("dpkg", "--print-architecture") if self.any else "all"
        date = email.utils.formatdate(int(os.environ["SOURCE_DATE_EPOCH"]))
        with tempfile.TemporaryDirectory() as top:
            os.chmod(top, 0o755)
            self.tree(top)
            changes = f"isthmus ({self.version}) unstable; urgency=medium\n\n  * {CHANGES}\n\n" \
                      f" -- {PEOPLE}  {date}\n"
            write(f"{top}/usr/share/doc/{self.name}/changelog", changes)
            subprocess.run(["gzip", "-9nf", f"{top}/usr/share/doc/{self.name}/changelog"], check=True)
            owned = [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]
            size = sum(os.path.getsize(path) for path in owned) // 1024
            sums = "".join(f"{hashlib.md5(open(path, 'rb').read()).hexdigest()}  {path[len(top) + 1:]}\n"
                           for path in sorted(owned) if not path.startswith(top + "/etc/"))
            fields = {"Package": self.name, "Version": self.version, "Architecture": arch, "Maintainer": PEOPLE,
                      "Installed-Size": size, "Depends": self.depends("Depends", self.libraries()),
                      "Suggests": self.depends("Suggests"), "Section": "net" if self.any else "doc",
                      "Priority": "optional", "Description": self.fields["Description"]}
            write(f"{top}/DEBIAN/control", "".join(f"{k}: {v}\n" for k, v in fields.items() if v))
            write(f"{top}/DEBIAN/md5sums", sums)
            kept = [path for path, kind in self.files if kind == "config"]
            if kept:
                write(f"{top}/DEBIAN/conffiles", "".join(path + "\n" for path in kept))
            for name in ("postinst", "prerm", "postrm") if self.name in SCRIPTED else ():
                write(f"{top}/DEBIAN/{name}", script(self.name, name, "deb"), 0o755)
            out("dpkg-deb", "--root-owner-group", "--build", top, f"{folder}/{self.name}_{self.version}_{arch}.deb")

    def rpm(self, folder):
        with tempfile.TemporaryDirectory() as top:
            write(f"{top}/spec", self.spec())
            self.tree(f"{top}/root")
            # Nothing is changed behind rpm's back: no other stripping, packing or byte-compiling.
            settings = {"_topdir": top, "_rpmdir": folder,
                        "_build_name_fmt": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
                        "__os_install_post": "%{nil}", "debug_package": "%{nil}", "_build_id_links": "none",
                        "_buildhost": "isthmus", "use_source_date_epoch_as_buildtime": "1",
                        "clamp_mtime_to_source_date_epoch": "1", "_docdir": "/usr/share/doc",
                        "_binary_payload": "w6.zstdio"}
            defines = [word for k, v in settings.items() for word in ("--define", f"{k} {v}")]
            out("rpmbuild", "-bb", "--quiet", "--buildroot", f"{top}/root", *defines, f"{top}/spec")

    def spec(self):
        kinds = {"config": "%config(noreplace) ", "file": ""}
        folders = {path[:i] for path, _ in self.files for i, c in enumerate(path)
                   if c == "/" and "/isthmus" in path[:i]}
        files = ["%dir " + folder for folder in sorted(folders)]
        files += [kinds[kind] + ("%doc " if path.startswith("/usr/share/doc/") else "") + path
                  for path, kind in self.files]
        lines = [f"Name: {self.name}", f"Version: {self.version}", "Release: 1", f"Packager: {PEOPLE}",
                 f"Summary: {self.summary[0].upper()}{self.summary[1:]}", "License: Apache-2.0", "Group: Unspecified",
                 *([] if self.any else ["BuildArch: noarch"]),
                 *(f"Requires: {word}" for word in [self.depends("Requires")] if word),
                 "%description", *(line.strip() for line in self.text.splitlines())]
        for name in ("post", "preun", "postun") if self.name in SCRIPTED else ():
            lines += ["%" + name, script(self.name, name, "rpm").replace("%", "%%")]
        date = time.strftime("%a %b %d %Y", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
        changes = ["%changelog", f"* {date} {PEOPLE} - {self.version}-1", f"- {CHANGES}"]
        return "\n".join([*lines, "%files", "%defattr(-,root,root)", *files, *changes]) + "\n"


def main():
    root, listed, version, folder = sys.argv[1:]
    rows = [line.split() for line in read(listed).splitlines()]
    paragraphs = [p for p in read(f"{HERE}/control").split("\n\n") if p.startswith("Package: ")]
    packages = [Package(p, rows, root, version) for p in paragraphs]
    unknown = {row[0] for row in rows} - {p.name for p in packages}
    if unknown:
        sys.exit(f"{HERE}/files names what {HERE}/control does not: {', '.join(sorted(unknown))}")
    for package in packages:
        package.deb(folder)
        package.rpm(os.path.abspath(folder))


if __name__ == "__main__":
    main()
